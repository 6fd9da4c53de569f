"""The files that are shipped with the program agree with each other."""

import json
import os
import pty
import re
import shlex
import subprocess

import pytest
import yaml

from harness.daemon import BINARY, ROOT
from harness.waiting import read_until


def output_urls(config):
    for feed in [config.get("defaults", {}), *config["feeds"].values()]:
        for output in (feed.get("outputs") or {}).values():
            if output:
                yield output["url"]


def shown_in(page):
    """The configurations that a page of the documentation shows."""
    for text in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        shown = yaml.safe_load(text)
        if isinstance(shown, dict) and "feeds" in shown:
            yield shown


def test_the_shipped_configurations_write_where_the_unit_and_the_image_may():
    configs = [*shown_in(ROOT / "README.md"),
               *(yaml.safe_load((ROOT / path).read_text())
                 for path in ("config/framelane.example.yaml", "docker/framelane.yaml"))]
    assert len(configs) == 3
    for config in configs:
        urls = list(output_urls(config))
        assert urls
        for url in urls:
            assert url.startswith("/var/lib/framelane/"), url


def test_a_fifo_of_the_example_lies_where_no_stop_removes_it():
    example = yaml.safe_load((ROOT / "config" / "framelane.example.yaml").read_text())
    kept = re.findall(r"^d +(\S+)", (ROOT / "systemd" / "framelane.tmpfiles").read_text(), re.MULTILINE)
    fifos = [feed["input"]["url"] for feed in example["feeds"].values()
             if feed["input"]["url"].endswith(".fifo")]
    assert fifos and all(fifo.rpartition("/")[0] in kept for fifo in fifos)


def test_every_page_that_the_readme_links_to_exists_and_every_page_for_users_is_linked():
    links = re.findall(r"\]\(([^):]+)\)", (ROOT / "README.md").read_text())
    linked = set()
    for link in links:
        page, _, heading = link.partition("#")
        linked.add(page)
        assert (ROOT / page).exists(), link
        headings = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.MULTILINE) if heading else []
        anchors = [re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings]
        assert not heading or heading in anchors, link
    pages = {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert pages - linked == {"docs/packaging-tests.md"}


def test_what_compose_mounts_and_builds_from_exists():
    folder = ROOT / "docker"
    compose = yaml.safe_load((folder / "compose.yaml").read_text())
    mounted = {}
    for name, service in compose["services"].items():
        for source, target, *_ in (volume.split(":") for volume in service["volumes"]):
            assert target.startswith("/"), (name, target)
            if source.startswith("."):
                mounted[source] = target
                assert (folder / source).exists(), (name, source)
            else:
                assert source in compose["volumes"], (name, source)
        for port in service["ports"]:
            assert port.startswith("127.0.0.1:"), (name, port)  # there is no TLS
        assert set(service.get("secrets", [])) <= set(compose["secrets"]), name
    assert len(mounted) == 6
    # Of a file that is mounted by itself, a container keeps what an editor has replaced, and a reload reads that.
    configuration = {target: source for source, target, *_ in
                     (volume.split(":") for volume in compose["services"]["framelane"]["volumes"])}
    assert (folder / configuration["/etc/framelane"] / "framelane.yaml").is_file()
    # Who scrapes has a token that may only read.
    tokens = yaml.safe_load((folder / "compose" / "framelane.yaml").read_text())["admin"]["tokens"]
    assert set(compose["services"]["framelane"]["secrets"]) == set(tokens.values())
    assert compose["services"]["prometheus"]["secrets"] == [tokens["read"]]
    jobs = yaml.safe_load((folder / "prometheus" / "prometheus.yml").read_text())["scrape_configs"]
    assert jobs[0]["authorization"]["credentials_file"] == f"/run/secrets/{tokens['read']}"
    build = compose["services"]["framelane"]["build"]
    context = folder / build["context"]
    dockerfile = (context / build["dockerfile"]).read_text()
    arguments = set(re.findall(r"^ARG (\w+)", dockerfile, re.MULTILINE))
    assert set(build["args"]) <= arguments
    for source in re.findall(r"^COPY (?!--from)(\S+) ", dockerfile, re.MULTILINE):
        assert (context / source).exists(), source
    rules = yaml.safe_load((folder / "prometheus" / "prometheus.yml").read_text())["rule_files"]
    assert [mounted[f"./prometheus/{rule}"] for rule in rules] == [f"/etc/prometheus/{rule}" for rule in rules]
    (provider,) = yaml.safe_load((folder / "grafana" / "dashboards.yml").read_text())["providers"]
    assert provider["options"]["path"] == mounted["./grafana/dashboards"]


def test_no_page_and_no_file_publishes_the_admin_port_to_everybody():
    shipped = [path for path in (ROOT / "docker").rglob("*") if path.is_file()]
    for path in [*ROOT.glob("docs/*.md"), ROOT / "README.md", *shipped]:
        for published in re.findall(r"-p (\S+:9853)\b", path.read_text()):
            assert published.startswith("127.0.0.1:"), (path, published)


def test_image_and_composition_run_configurations_that_are_right(cli):
    for name in ("framelane.yaml", "compose/framelane.yaml"):
        done = cli("check", "--no-env", "-c", ROOT / "docker" / name)
        assert done.returncode == 0, done.stderr


def test_the_unit_s_groups_are_made_by_its_sysusers():
    unit = (ROOT / "systemd" / "framelane.service.in").read_text()
    groups = re.search(r"^SupplementaryGroups=(.*)", unit, re.MULTILINE).group(1).split()
    made = re.findall(r"^g +(\S+)", (ROOT / "systemd" / "framelane.sysusers").read_text(), re.MULTILINE)
    assert set(groups) <= set(made)


# The manual pages, the completion and the package.

COMMANDS = ("run", "transcode", "check", "devices", "healthcheck", "tune", "schema")
COMPLETION = ROOT / "packaging" / "framelane.bash"


def manual(page):
    return (ROOT / "docs" / "man" / page).read_text()


def options_in_manual(text):
    """The options for which a part of a page has an entry (.It Fl c , Fl -config)."""
    entries = re.findall(r"^\.It (Fl .*)", text, re.MULTILINE)
    return {f"-{name}" for entry in entries for name in re.findall(r"Fl (-?[a-z][a-z-]*)", entry)}


def options_in_help(cli, *command):
    done = cli(*command, "--help")
    assert done.returncode == 0, done.stderr
    listed = re.findall(r"^  (-[^ ]+)", done.stdout, re.MULTILINE)
    return {option for options in listed for option in options.split(",")}


def commands_in_help(cli):
    listed = re.split("(?i)\nsubcommands:", cli("--help").stdout)[1].split("\n\n")[0]
    return re.findall(r"^  ([a-z]+) ", listed, re.MULTILINE)


@pytest.mark.bench
def test_the_manual_page_has_the_commands_and_options_that_help_lists(cli):
    options, commands = manual("framelane.1").split(".Sh COMMANDS")
    assert options_in_manual(options) == options_in_help(cli)
    sections = re.split(r"^\.Ss ", commands, flags=re.MULTILINE)[1:]
    parts = {section.split()[0]: section for section in sections}
    assert list(parts) == commands_in_help(cli)
    for command in COMMANDS:
        assert options_in_manual(parts[command]) | {"-h", "--help"} == options_in_help(cli, command), command


@pytest.mark.bench
def test_the_manual_page_of_bench_has_the_suites_and_options_that_help_lists(cli):
    page = manual("framelane-bench.1")
    assert options_in_manual(page) == options_in_help(cli, "bench")
    suites = re.search(r"SUITE :{([a-z,]+)}", cli("bench", "--help").stdout).group(1).split(",")
    assert sorted(re.findall(r"^\.It Cm (.+)", page, re.MULTILINE)) == sorted(suites)


def test_the_manual_page_of_the_configuration_names_every_key(cli):
    schema = json.loads(cli("schema").stdout)
    file_keys, feed_keys = manual("framelane.yaml.5").split(".Sh KEYS OF A FEED")
    known = ((file_keys, schema["properties"]), (feed_keys, schema["$defs"]["feed"]["properties"]))
    for text, properties in known:
        named = {key for entry in re.findall(r"^\.It Ic (.+)", text, re.MULTILINE) for key in entry.split(" , ")}
        assert named == set(properties), named ^ set(properties)


def test_the_manual_pages_are_well_formed():
    for page in (ROOT / "docs" / "man").iterdir():
        shown = subprocess.run(["man", "--warnings", "-l", page], capture_output=True, text=True, check=True,
                               env=os.environ | {"MANWIDTH": "100", "LC_ALL": "C.UTF-8"})
        assert not shown.stderr, shown.stderr
        assert "SEE ALSO" in shown.stdout


def completed(*words):
    """What bash offers for the last of these words."""
    script = (f"source {shlex.quote(str(COMPLETION))}; COMP_WORDS=({shlex.join(words)}); "
              f"COMP_CWORD={len(words) - 1}; _framelane; printf '%s\\n' \"${{COMPREPLY[@]}}\"")
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True,
                          env=os.environ | {"PATH": f"{BINARY.parent}:{os.environ['PATH']}"})
    assert not done.stderr
    return set(done.stdout.split())


def test_bash_completes_commands_options_and_values(cli):
    assert completed("framelane", "") == set(commands_in_help(cli))
    assert completed("framelane", "tran") == {"transcode"}
    assert completed("framelane", "transcode", "a.mp4", "-") == options_in_help(cli, "transcode")
    assert completed("framelane", "check", "--n") == {"--no-env"}
    assert completed("framelane", "run", "--once", "--") == options_in_help(cli, "run") - {"-h", "-c"}
    assert completed("framelane", "transcode", "--device", "c") == {"cpu", "cuda"}
    assert completed("framelane", "transcode", "--slices", "") == {"auto"}
    # Names of files, which are readline's: for arguments, and for options that take one.
    assert completed("framelane", "transcode", "") == completed("framelane", "check", "-c", "") == set()


@pytest.mark.bench
def test_bash_completes_suites():
    assert {"all", "stage"} <= completed("framelane", "bench", "--json", "x", "")
    assert completed("framelane-bench", "ve") == {"vecadd"}
    assert completed("framelane", "bench", "--json", "") == set()
    assert completed("framelane-bench", "tune", "--fe") == {"--feeds"}


def test_the_tab_key_completes_a_command_and_then_a_file(tmp_path, start):
    (tmp_path / "gate.yaml").touch()
    leader, terminal = pty.openpty()
    start("bash", "--norc", "-i", stdin=terminal, stdout=terminal, stderr=terminal, cwd=tmp_path,
          start_new_session=True, env=os.environ | {
              "PATH": f"{BINARY.parent}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "> "})
    os.write(leader, f"source {shlex.quote(str(COMPLETION))}; echo 'sour''ced'\n".encode())
    read_until(leader, b"\nsourced")
    os.write(leader, b"framelane che\t-c ga\t")
    read_until(leader, b"framelane check -c gate.yaml ")
    os.close(terminal)
    os.close(leader)


def test_the_package_s_configuration_is_right_once_its_feed_is_no_longer_a_comment(cli, tmp_path):
    shipped = (ROOT / "packaging" / "framelane.yaml").read_text()
    (tmp_path / "shipped.yaml").write_text(shipped)
    done = cli("check", "-c", tmp_path / "shipped.yaml")
    assert (done.returncode, done.stderr.count("\n")) == (78, 1)
    assert "feeds is missing; name at least one feed" in done.stderr
    comment, feed = shipped.split("# feeds:")
    edited = comment + re.sub("^# ", "", "# feeds:" + feed, flags=re.MULTILINE)
    (tmp_path / "edited.yaml").write_text(edited)
    done = cli("check", "-c", tmp_path / "edited.yaml")
    assert done.returncode == 0, done.stderr
    for url in output_urls(yaml.safe_load(edited)):
        assert url.startswith("/var/lib/framelane/"), url


def version_at(folder):
    done = subprocess.run(["bash", "-c", f"source {ROOT}/scripts/lib.sh; package_version"], cwd=folder, check=True,
                          capture_output=True, text=True)
    return done.stdout.strip()


def test_versions_of_packages_sort_as_the_commits_do(tmp_path):
    def git(*arguments, **environment):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments], cwd=tmp_path,
                       check=True, capture_output=True, env=os.environ | environment)

    def commit(date):
        git("commit", "--allow-empty", "-m", date, GIT_COMMITTER_DATE=date)
        versions.append(version_at(tmp_path))

    versions = []
    git("init")
    (tmp_path / "CMakeLists.txt").write_text("project(framelane VERSION 1.2.0 LANGUAGES CXX\n")
    git("add", ".")
    commit("2026-01-31T23:30:00-0200")   # in UTC a day later
    assert versions[0].startswith("1.2.0~20260201.013000.")
    commit("2026-02-01T02:00:00+0000")
    (tmp_path / "CMakeLists.txt").write_text("project(framelane VERSION 1.2.0 LANGUAGES C CXX\n")
    versions.append(version_at(tmp_path))
    assert versions[2] == versions[1] + "+changed"
    git("commit", "-a", "-m", "release", GIT_COMMITTER_DATE="2026-02-01T03:00:00+0000")
    git("tag", "v1.2.0")
    versions.append(version_at(tmp_path))
    assert versions[3] == "1.2.0"
    (tmp_path / "CMakeLists.txt").write_text("project(framelane VERSION 1.3.0 LANGUAGES C CXX\n")
    git("add", ".")
    commit("2026-02-02T00:00:00+0000")
    # Debian's revision tells the release of Debian: a later one is an upgrade.
    full = [f"{version}-1~{release}" for version in versions for release in ("deb12", "deb13")]
    for older, newer in zip(full, full[1:]):
        assert subprocess.run(["dpkg", "--compare-versions", older, "lt", newer]).returncode == 0, (older, newer)
