"""What docker/prometheus and docker/grafana ask for is there: a real Prometheus answers every query about a running
daemon."""

import json
import math
import re
import subprocess

import yaml

from harness.camera import free_port
from harness.configs import COPY, IMPATIENT, one_feed
from harness.daemon import ROOT
from harness.metrics_page import FIXED
from harness.prometheus import RULES
from harness.waiting import wait_until

FOLDER = ROOT / "docker" / "grafana" / "dashboards"
DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
# What Grafana puts for the variables. "$feed" is one feed, so a panel's query is asked for each.
CHOSEN = {"$__rate_interval": "3s", "$job": "framelane", "$instance": ".*", "$device": ".*"}
FEEDS = ("live", "raw", "copied", "dead", "capture")


def queries():
    """{where it stands: [PromQL, of which one must have an answer]}"""
    found = {}
    for name, dashboard in DASHBOARDS.items():
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                expression = target["expr"]
                for variable, value in CHOSEN.items():
                    expression = expression.replace(variable, value)
                found[f"{name}: {panel['title']} {target['refId']}"] = [
                    expression.replace("$feed", feed) for feed in (FEEDS if "$feed" in expression else [""])]
    for rule in yaml.safe_load(RULES.read_text())["groups"][0]["rules"]:
        # With bool a comparison is 0 where it is not true: also what is well has an answer.
        condition = re.sub(r"(==|!=|>) (?=\d)", r"\1 bool ", rule["expr"])
        found[f"rule {rule.get('alert') or rule['record']}"] = [rule["expr"] if "record" in rule else condition]
    return found


def test_every_panel_and_every_rule_has_an_answer(with_gpu, prometheus):
    server = prometheus(with_gpu)
    left = queries()
    assert len(left) > 80

    def answered():
        for where, expressions in list(left.items()):
            if any(not math.isnan(value) for one in expressions for _, value in server.query(one)):
                del left[where]
        return not left

    try:
        wait_until(answered, "answers", 20)
    except AssertionError as error:
        raise AssertionError(f"no answer: {json.dumps(left, indent=1)}") from error
    sick = [rule for group in server.get("rules")["groups"] for rule in group["rules"] if rule["health"] != "ok"]
    assert not sick, sick


def test_what_variables_offer_and_queries_name_exists(with_gpu):
    metrics = with_gpu.metrics()
    for dashboard in DASHBOARDS.values():
        for variable in dashboard["templating"]["list"]:
            if variable["type"] != "query":
                continue
            name, label = re.fullmatch(r"label_values\((\w+)(?:\{.*\})?, (\w+)\)", variable["definition"]).groups()
            # Prometheus adds job and instance.
            assert metrics.series(name), name
            assert label in ("job", "instance") or all(label in labels for labels, _ in metrics.series(name))
    # A misspelt alternative, in "stop|reload" say, would change an answer, but not make it empty.
    named = re.findall(r"(?<![\w:])(framelane_\w+)\{([^}]*)\}", str(queries()))
    chosen = [(name, label, set(values.split("|"))) for name, selector in named
              for label, values in re.findall(r'(\w+)(?:=~|!~|!=|=)"([^"]+)"', selector) if label in FIXED]
    assert len(chosen) > 5
    for name, label, values in chosen:
        series = metrics.samples[name] or metrics.samples[f"{name}_count"]
        assert values <= {labels[label] for labels, _ in series}, (name, label, values)


def test_panels_choose_by_the_variables_alone():
    uids = [dashboard["uid"] for dashboard in DASHBOARDS.values()]
    assert sorted(DASHBOARDS) == ["device", "feed", "fleet"] and len(set(uids)) == 3
    for name, dashboard in DASHBOARDS.items():
        variables = {variable["name"] for variable in dashboard["templating"]["list"]}
        panels = dashboard["panels"]
        assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1)), name
        assert not re.search(r"\d+\.\d+\.\d+\.\d+|localhost|:\d{4}\b", json.dumps(dashboard)), name
        for panel in panels:
            where = f"{name}: {panel['title']}"
            place = panel["gridPos"]
            assert place["x"] + place["w"] <= 24, where
            if panel["type"] == "row":
                continue
            assert len(panel["description"]) > 20 and panel["fieldConfig"]["defaults"]["unit"], where
            for asked in (panel, *panel["targets"]):
                assert asked["datasource"]["uid"] == "${datasource}", where
            for target in panel["targets"]:
                used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
                assert used <= variables, (where, used)
                # Every series that is asked for is one of the chosen instances.
                selectors = re.findall(r"(?<![\w:])(?:[\w:]*framelane_|process_|ALERTS)[\w:]*(\{[^}]*\})?",
                                       target["expr"])
                assert selectors and all('instance=~"$instance"' in one for one in selectors), (where, selectors)


def test_panels_do_not_lie_upon_each_other():
    for name, dashboard in DASHBOARDS.items():
        taken = {}
        for panel in dashboard["panels"]:
            place = panel["gridPos"]
            for cell in ((x, y) for x in range(place["x"], place["x"] + place["w"])
                         for y in range(place["y"], place["y"] + place["h"])):
                assert cell not in taken, (name, panel["title"], taken[cell])
                taken[cell] = panel["title"]


def test_the_dashboards_are_what_their_script_writes(tmp_path):
    subprocess.run([ROOT / "scripts" / "make-dashboards", tmp_path], check=True, timeout=60)
    for path in FOLDER.glob("*.json"):
        assert (tmp_path / path.name).read_text() == path.read_text(), "run scripts/make-dashboards"


def test_a_killed_camera_fires_its_alert_and_a_new_one_clears_it(framelane, prometheus, camera):
    gate = camera()
    daemon = framelane(one_feed({"url": gate.url, **IMPATIENT}, COPY, {"out": {"url": "null:"}}),
                       port=free_port()).wait_ready()
    daemon.wait_metrics(lambda m: m.one("framelane_feed_up", feed="cam") == 1, "video")
    server = prometheus(daemon)
    wait_until(lambda: server.query("feed:framelane_without_video:bool == 0"), "video, as Prometheus sees it")
    assert not server.alerts()

    def down():
        return [alert for alert in server.alerts() if alert["alertname"] == "FramelaneFeedDown"]

    gate.kill()
    [alert] = wait_until(down, "the alert to fire", 30)
    assert (alert["feed"], alert["severity"]) == ("cam", "critical")
    gate.start()
    wait_until(lambda: not down(), "the alert to clear", 30)
    assert daemon.metrics().one("framelane_feed_up", feed="cam") == 1
