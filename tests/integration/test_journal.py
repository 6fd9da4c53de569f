"""Under systemd, what is logged about a feed goes to journald's socket, with fields."""

import socket

from harness.camera import free_port
from harness.configs import COPY, IMPATIENT, looped, one_feed


def test_lines_about_feeds_have_fields_in_the_journal(framelane, journal, clip):
    url = f"tcp://u:hush-hush@127.0.0.1:{free_port()}"
    config = one_feed(looped(clip), COPY, {"gone": {"url": url, "format": "mpegts", **IMPATIENT}})
    config["feeds"]["none"] = {"input": {"url": f"rtsp://127.0.0.1:{free_port()}/", **IMPATIENT}}
    daemon = framelane(config, env=journal.environment, wrapper=journal.wrapper).wait_ready()
    running = journal.wait(FEED="cam", PRIORITY="6", MESSAGE="feed cam: running (h264 768x576)")
    assert set(running) == {"FEED", "PRIORITY", "MESSAGE", "SYSLOG_IDENTIFIER"}
    assert running["SYSLOG_IDENTIFIER"] == "framelane"
    failed = journal.wait(FEED="cam", OUTPUT="gone", CODE="refused", PRIORITY="4")
    assert failed["MESSAGE"].startswith("feed cam: output gone: cannot open tcp://***@127.0.0.1:")
    assert "hush-hush" not in str(journal.records())
    journal.wait(FEED="none", CODE="refused")
    # What is about no feed, and what journald does not take, goes to standard error.
    daemon.wait_log("<6>ready\n")
    assert "feed cam" not in daemon.log()
    journal.close()
    daemon.restart_feed("cam")
    daemon.wait_log("<6>feed cam: restarting on request\n")


def test_a_journal_that_does_not_read_holds_nothing_up(framelane, journal, clip):
    config = one_feed(looped(clip), COPY)
    daemon = framelane(config, env=journal.environment, wrapper=journal.wrapper).wait_ready()
    while True:  # until its socket is full
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as other:
            try:
                other.sendto(b"MESSAGE=x\n", str(daemon.folder / "journal" / "socket"))
            except BlockingIOError:
                break
    daemon.restart_feed("cam")
    daemon.wait_log("<6>feed cam: restarting on request\n")
    daemon.stop()


def test_json_goes_to_standard_error_under_systemd_too(framelane, journal, clip):
    config = one_feed(looped(clip), COPY)
    config["log"] = {"format": "json"}
    daemon = framelane(config, env=journal.environment, wrapper=journal.wrapper).wait_ready()
    daemon.wait_log('"feed":"cam","msg":"running')
    assert not journal.records()
