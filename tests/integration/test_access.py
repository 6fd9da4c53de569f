"""Who may ask what of the admin listener."""

import base64
import hashlib
import http.client
import json
import socket
import ssl
import subprocess
import warnings

import pytest

from harness.camera import free_port
from harness.configs import looped, one_feed
from harness.daemon import run
from harness.events import Events
from harness.prometheus import Prometheus
from harness.waiting import TIME_FACTOR, wait_until

READ, CONTROL = "reader-" + 20 * "r", "controller-" + 20 * "c"
HEADER = {"X-Framelane-Request": "1"}


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def basic(token):
    return {"Authorization": "Basic " + base64.b64encode(f"scraper:{token}".encode()).decode()}


class Access:
    """The files that `admin` names, in a folder."""

    def __init__(self, folder):
        self.certificate, self.key = folder / "certificate.pem", folder / "key.pem"
        self.read, self.control = folder / "read.token", folder / "control.token"
        self.write(self.read, READ)
        self.write(self.control, CONTROL)
        self.renew()

    @staticmethod
    def write(path, text, mode=0o600):
        new = path.with_suffix(".new")
        new.write_text(text + "\n")
        new.chmod(mode)
        new.replace(path)

    def renew(self):
        """Replaces certificate and key."""
        for path in (self.certificate, self.key):
            path.unlink(missing_ok=True)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-keyout", self.key, "-out", self.certificate, "-days", "2", "-subj", "/CN=framelane",
             "-addext", "subjectAltName=DNS:localhost,DNS:cameras.example.org,IP:127.0.0.1"],
            check=True, capture_output=True)
        self.key.chmod(0o600)

    @property
    def tokens(self):
        return {"tokens": {"read": str(self.read), "control": [str(self.control)]}}

    @property
    def tls(self):
        return {"tls": {"certificate": str(self.certificate), "key": str(self.key)}}

    def context(self):
        return ssl.create_default_context(cafile=self.certificate)

    def fingerprint(self):
        der = ssl.PEM_cert_to_DER_cert(self.certificate.read_text())
        return hashlib.sha256(der).hexdigest()


@pytest.fixture
def access(tmp_path):
    folder = tmp_path / "access"
    folder.mkdir()
    return Access(folder)


def fingerprint_of(connection):
    """Of the certificate that the peer of an open connection has shown."""
    return hashlib.sha256(connection.sock.getpeercert(binary_form=True)).hexdigest()


# Without authentication


def test_where_others_can_connect_it_does_not_start_without_a_token(clip, tmp_path):
    path = tmp_path / "framelane.yaml"
    port = free_port()
    config = {"admin": {"listen": f"0.0.0.0:{port}"}, **one_feed(looped(clip))}
    path.write_text(json.dumps(config))
    for command in ("check", "run"):
        done = run(command, "-c", path)
        assert done.returncode == 78, command
        [line] = done.stderr.splitlines()
        assert f"{path}:1:" in line and "admin.listen: " in line and "admin.insecure" in line, line


def test_it_does_where_the_configuration_says_so(framelane, clip):
    port = free_port()
    daemon = framelane(one_feed(looped(clip)), port=port,
                       admin={"listen": f"0.0.0.0:{port}", "insecure": True}).wait_ready()
    assert daemon.request("GET", "/metrics")[0] == 200


@pytest.mark.parametrize("spoil, said", [
    (lambda access: access.read.unlink(), "No such file"),
    (lambda access: access.write(access.read, ""), "is empty"),
    (lambda access: access.write(access.read, "short"), "of 5 characters"),
    (lambda access: access.read.chmod(0o644), "every user of this machine can read"),
    (lambda access: access.key.chmod(0o644), "every user of this machine can read"),
    (lambda access: access.key.write_text("no key"), "has no private key"),
    (lambda access: access.certificate.write_text("no certificate"), "has no certificate"),
], ids=["no file", "empty", "short", "open to others", "open key", "no key", "no certificate"])
def test_a_file_that_is_wrong_is_one_line_and_nothing_starts(clip, tmp_path, access, spoil, said):
    spoil(access)
    path = tmp_path / "framelane.yaml"
    path.write_text(json.dumps({"admin": {"listen": f"127.0.0.1:{free_port()}", **access.tokens,
                                          **access.tls}, **one_feed(looped(clip))}))
    for command in ("check", "run"):
        done = run(command, "-c", path)
        assert done.returncode == 78, command
        [line] = done.stderr.splitlines()
        assert said in line and ": admin." in line, line


# Tokens


@pytest.mark.sanitizers
def test_a_token_may_what_its_role_says(framelane, clip, access):
    daemon = framelane(one_feed(looped(clip)), port=free_port(), admin=access.tokens, token=CONTROL,
                       secrets=[READ, CONTROL]).wait_ready()
    restart = "/api/v1/feeds/cam/restart"

    def status(method, path, *headers):
        merged = {"Authorization": "none"}
        for each in headers:
            merged.update(each)
        return daemon.request(method, path, headers=merged)[0]

    for path in ("/healthz", "/readyz"):
        assert status("GET", path) == 200, path
    for path in ("/", "/metrics", "/api/v1/feeds", "/api/v1/feeds/none", "/no/such/path"):
        assert status("GET", path) == 401, path
        assert status("GET", path, bearer("x" + READ)) == 401, path
        for way in (bearer, basic):
            for token in (READ, CONTROL):
                assert status("GET", path, way(token)) in (200, 404), path
    daemon.wait_state("cam", "running")
    since = daemon.feed("cam")["since"]
    for path in (restart, "/api/v1/reload"):
        assert status("POST", path, HEADER) == 401
        assert status("POST", path, HEADER, bearer(READ)) == 403
        assert status("POST", path, HEADER, basic(READ)) == 403
        assert status("POST", path, bearer(CONTROL)) == 403  # a foreign page may have a browser send it
    assert daemon.feed("cam")["since"] == since
    assert status("POST", restart, HEADER, basic(CONTROL)) == 202
    code = json.loads(daemon.request("POST", restart, headers={**HEADER, **bearer(READ)})[1])["error"]
    assert code["code"] == "control_token_needed" and "admin.tokens.control" in code["message"]
    assert 'refused GET "/" of 127.0.0.1 without a token; it needs one of admin.tokens' in daemon.log()
    daemon.stop()


def test_a_refusal_asks_for_a_token(framelane, clip, access):
    daemon = framelane(one_feed(looped(clip)), port=free_port(), admin=access.tokens, token=READ).wait_ready()
    connection = daemon.connect()
    connection.request("GET", "/metrics")
    response = connection.getresponse()
    response.read()
    ways = response.headers.get_all("WWW-Authenticate")
    assert response.status == 401 and [way.split()[0] for way in ways] == ["Basic", "Bearer"]
    connection.close()


def test_tokens_guard_a_unix_socket_too(framelane, clip, access):
    daemon = framelane(one_feed(looped(clip)), admin=access.tokens, token=READ).wait_ready()
    assert daemon.request("GET", "/metrics", headers={"Authorization": "none"})[0] == 401
    assert daemon.request("GET", "/metrics")[0] == 200


def test_a_page_whose_token_is_taken_away_is_told_nothing_more(framelane, clip, access):
    daemon = framelane(one_feed(looped(clip)), port=free_port(), admin=access.tokens, token=CONTROL).wait_ready()
    page, other = Events(daemon, READ), Events(daemon, CONTROL)
    page.next("status")
    access.write(access.read, "another-" + READ)
    daemon.reload()
    with pytest.raises(AssertionError, match="the stream has ended"):
        for _ in range(5):
            page.next("status")
    for _ in range(2):
        other.next("status")
    for one in (page, other):
        one.close()


def test_a_reload_reads_the_tokens_again(framelane, clip, access):
    config = one_feed(looped(clip))
    daemon = framelane(config, port=free_port(), admin=access.tokens, token=CONTROL).wait_ready()
    access.write(access.read, "another-" + READ)
    assert daemon.request("GET", "/metrics", headers=bearer(READ))[0] == 200
    daemon.reload()
    assert daemon.request("GET", "/metrics", headers=bearer(READ))[0] == 401
    assert daemon.request("GET", "/metrics", headers=bearer("another-" + READ))[0] == 200
    # What is wrong changes nothing.
    access.write(access.read, "short")
    [problem] = daemon.reload(expected=422)["error"]["problems"]
    assert problem["key"] == "admin.tokens.read" and problem["line"] and "characters" in problem["message"]
    assert daemon.request("GET", "/metrics", headers=bearer("another-" + READ))[0] == 200
    assert daemon.metrics().one("framelane_config_last_reload_successful") == 0


def test_another_address_takes_its_tokens_along(framelane, clip, access):
    """Its new tokens, or their absence, must not apply to the old address."""
    port = free_port()
    everywhere = {"listen": f"0.0.0.0:{port}", **access.tokens}
    daemon = framelane(one_feed(looped(clip)), port=port, admin=everywhere, token=CONTROL).wait_ready()
    assert "admin.tls: is not set, so tokens and answers cross the network in plain text" in daemon.log()
    daemon.admin = {"listen": f"127.0.0.1:{port}"}
    assert daemon.reload(one_feed(looped(clip)))["next_start"] == ["admin.listen", "admin.tokens"]
    assert daemon.request("GET", "/metrics", headers={"Authorization": "none"})[0] == 401
    daemon.admin = {**everywhere, **access.tls}
    assert daemon.reload(one_feed(looped(clip)))["next_start"] == ["admin.tls"]
    assert daemon.request("GET", "/metrics")[0] == 200


# TLS


@pytest.mark.sanitizers
def test_certificate_and_key_change_with_a_reload(framelane, clip, access):
    old = access.fingerprint()
    daemon = framelane(one_feed(looped(clip)), port=free_port(), admin={**access.tokens, **access.tls},
                       token=CONTROL, tls=access.context()).wait_ready()
    stays = daemon.connect()

    def asked(connection):
        connection.request("GET", "/metrics", headers=bearer(CONTROL))
        response = connection.getresponse()
        return (response.status, bool(response.read()))

    assert asked(stays) == (200, True)
    access.renew()
    new = access.fingerprint()
    assert old != new and fingerprint_of(stays) == old
    daemon.reload()
    daemon.tls = access.context()
    assert asked(stays) == (200, True)  # the connection of before goes on
    assert fingerprint_of(stays) == old
    fresh = daemon.connect()
    assert asked(fresh) == (200, True) and fingerprint_of(fresh) == new
    # A key that belongs to another certificate: the old pair goes on.
    access.certificate.rename(access.certificate.with_suffix(".kept"))
    access.renew()
    access.certificate.with_suffix(".kept").replace(access.certificate)
    [problem] = daemon.reload(expected=422)["error"]["problems"]
    assert problem["key"] == "admin.tls.key" and "is not the key" in problem["message"]
    again = daemon.connect()
    assert asked(again) == (200, True) and fingerprint_of(again) == new
    for connection in (stays, fresh, again):
        connection.close()
    daemon.stop()


def test_old_protocols_and_plain_text_are_refused(framelane, clip, access):
    port = free_port()
    daemon = framelane(one_feed(looped(clip)), port=port, admin=access.tls, tls=access.context()).wait_ready()
    with pytest.raises((http.client.HTTPException, OSError)):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10 * TIME_FACTOR)
        connection.request("GET", "/healthz")
        connection.getresponse()
    for version, expected in ((ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True),
                              (ssl.TLSVersion.TLSv1_3, True)):
        context = access.context()
        warnings.simplefilter("ignore", DeprecationWarning)  # TLS 1.1 is what is tried
        context.set_ciphers("ALL:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
        daemon.tls = context
        try:
            answered = daemon.request("GET", "/healthz")[0] == 200
        except ssl.SSLError:
            answered = False
        assert answered == expected, version
    daemon.tls = access.context()


def test_a_certificates_name_is_served(framelane, clip, access):
    daemon = framelane(one_feed(looped(clip)), port=free_port(), admin=access.tls,
                       tls=access.context()).wait_ready()
    assert daemon.request("GET", "/metrics", headers={"Host": "cameras.example.org:9853"})[0] == 200
    assert daemon.request("GET", "/metrics", headers={"Host": "[::1].evil.example"})[0] == 400


def test_handshakes_that_stand_still_hold_up_nobody(framelane, clip, access):
    port = free_port()
    daemon = framelane(one_feed(looped(clip)), port=port, admin=access.tls, tls=access.context()).wait_ready()
    half_open = []
    for number in range(15):
        half_open.append(socket.create_connection(("127.0.0.1", port)))
        if number % 2:
            half_open[-1].sendall(bytes.fromhex("16030102000100"))
    assert daemon.request("GET", "/readyz")[0] == 200
    for client in half_open:
        client.close()


# What watches it


MODES = {"tokens": lambda access: access.tokens, "tls": lambda access: access.tls,
         "both": lambda access: {**access.tokens, **access.tls}}


@pytest.mark.parametrize("mode", MODES)
def test_health_is_asked_for_without_a_token(framelane, clip, tmp_path, access, mode):
    """By `healthcheck` and by systemd's watchdog."""
    address = tmp_path / "notify"
    port = free_port()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(address))
        manager.settimeout(10 * TIME_FACTOR)
        daemon = framelane(one_feed(looped(clip)), port=port, admin=MODES[mode](access), token=READ,
                           tls=access.context() if "tls" in MODES[mode](access) else None,
                           env={"NOTIFY_SOCKET": str(address), "WATCHDOG_USEC": "1000000"}).wait_ready()
        while "WATCHDOG=1" not in manager.recv(4096).decode():
            pass
    # The certificate is not looked at, so one that a renewal has just replaced does no harm.
    access.certificate.write_text("is being replaced")
    done = run("healthcheck", "-c", daemon.config_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "admin listener: refused" not in daemon.log()
    if mode == "tls":
        done = run("healthcheck", "--url", f"https://127.0.0.1:{port}")
        assert done.returncode == 1 and "its certificate is not accepted" in done.stderr, done.stderr
    daemon.kill()


@pytest.mark.parametrize("change", ["comes", "goes"])
def test_health_is_seen_while_tls_waits_for_the_next_start(framelane, clip, access, change):
    before, after = ({}, access.tls) if change == "comes" else (access.tls, {})
    daemon = framelane(one_feed(looped(clip)), port=free_port(), admin=before,
                       tls=access.context() if before else None).wait_ready()
    config = json.loads(daemon.config_path.read_text())
    config["admin"] = {"listen": config["admin"]["listen"], **after}
    daemon.config_path.write_text(json.dumps(config))
    done = run("healthcheck", "-c", daemon.config_path)
    assert (done.returncode, done.stderr) == (0, "")
    daemon.kill()
    done = run("healthcheck", "-c", daemon.config_path)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, done.stderr


def test_prometheus_scrapes_with_a_token_over_tls(framelane, clip, tmp_path, access):
    """As bearer and as Basic password; with a wrong token it does not."""
    daemon = framelane(one_feed(looped(clip)), port=free_port(), admin={**access.tokens, **access.tls},
                       token=READ, tls=access.context()).wait_ready()
    wrong = tmp_path / "wrong.token"
    access.write(wrong, "wrong-0123456789")
    keys = {"bearer": {"authorization": {"credentials_file": str(access.read)}},
            "basic": {"basic_auth": {"username": "prometheus", "password_file": str(access.read)}},
            "wrong": {"authorization": {"credentials_file": str(wrong)}}}
    jobs = [{"job_name": name, "scheme": "https", "tls_config": {"ca_file": str(access.certificate)},
             "static_configs": [{"targets": [f"127.0.0.1:{daemon.port}"]}], **key}
            for name, key in keys.items()]
    server = Prometheus(tmp_path, {"global": {"scrape_interval": "200ms"}, "scrape_configs": jobs})
    try:
        def targets():
            found = server.get("targets")["activeTargets"]
            health = {target["labels"]["job"]: target for target in found}
            return health if all(t["health"] != "unknown" for t in found) and len(found) == 3 else None

        seen = wait_until(targets, "three scrapes", 30)
        assert seen["bearer"]["health"] == "up" and seen["basic"]["health"] == "up", seen
        assert seen["wrong"]["health"] == "down" and "401" in seen["wrong"]["lastError"]
    finally:
        server.close()
