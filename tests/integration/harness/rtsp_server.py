"""An RTSP camera on gst-rtsp-server. It plays a file at its own rate to each client; or, with --clock, it
shows what time it is.

Usage: rtsp_server.py PORT FILE [--video h264|h265] [--audio alaw|aac] [--transport tcp|udp]
                      [--auth basic|digest --user U --password P] [--clock GROUPS]
"""

import argparse
import pathlib
import threading
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtsp", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtsp, GstRtspServer  # noqa: E402

import clock  # noqa: E402


def pipeline(path, video, audio):
    launch = f'( filesrc location="{path}" ! qtdemux name=demux '
    launch += f"demux.video_0 ! queue ! rtp{video}pay name=pay0 pt=96 config-interval=-1 "
    if audio == "alaw":
        launch += "demux.audio_0 ! queue ! rtppcmapay name=pay1 pt=8 "
    elif audio == "aac":
        launch += "demux.audio_0 ! queue ! rtpmp4gpay name=pay1 pt=97 "
    return launch + ")"


class Clock:
    """Sends the pictures of harness/clock.py when it is their time. As many cameras do, it begins with those
    since the last keyframe, all at once, and with `groups` before it."""

    LAUNCH = ("( appsrc name=pictures is-live=true format=time caps=video/x-h264,stream-format=byte-stream,"
              "alignment=au ! rtph264pay name=pay0 pt=96 config-interval=-1 )")

    def __init__(self, path, groups):
        self._groups = groups
        delimiter = b"\0\0\0\1\x09"
        self._pictures = [delimiter + rest
                          for rest in pathlib.Path(path).read_bytes().split(delimiter)[1:]]

    def serve(self, _, media):
        source = media.get_element().get_child_by_name("pictures")
        threading.Thread(target=self._send, args=(source,), daemon=True).start()

    @staticmethod
    def _do_not_pace(source):
        """The server's sinks would hold back what comes at once."""
        sinks = source.get_parent().get_parent().iterate_sinks()
        result, sink = sinks.next()
        while result == Gst.IteratorResult.OK:
            if sink.find_property("sync"):
                sink.set_property("sync", False)
            result, sink = sinks.next()

    def _send(self, source):
        first = (int(time.time() * clock.RATE) // clock.GROUP - self._groups) * clock.GROUP
        number = first
        while True:
            time.sleep(max(0, number / clock.RATE - time.time()))
            picture = Gst.Buffer.new_wrapped(self._pictures[number % clock.PICTURES])
            picture.pts = (number - first) * Gst.SECOND // clock.RATE
            picture.duration = Gst.SECOND // clock.RATE
            self._do_not_pace(source)
            if source.emit("push-buffer", picture) != Gst.FlowReturn.OK:
                return
            number += 1


def require_login(server, factory, arguments):
    auth = GstRtspServer.RTSPAuth.new()
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "viewer")
    if arguments.auth == "digest":
        auth.set_supported_methods(GstRtspServer.RTSPAuthMethod.DIGEST
                                   if hasattr(GstRtspServer, "RTSPAuthMethod") else 2)
        auth.add_digest(arguments.user, arguments.password, token)
    else:
        auth.add_basic(
            GstRtspServer.RTSPAuth.make_basic(arguments.user, arguments.password), token
        )
    server.set_auth(auth)
    permissions = GstRtspServer.RTSPPermissions()
    permissions.add_permission_for_role("viewer", "media.factory.access", True)
    permissions.add_permission_for_role("viewer", "media.factory.construct", True)
    factory.set_permissions(permissions)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port")
    parser.add_argument("file")
    parser.add_argument("--video", choices=["h264", "h265"], default="h264")
    parser.add_argument("--audio", choices=["alaw", "aac"])
    parser.add_argument("--transport", choices=["tcp", "udp"])
    parser.add_argument("--auth", choices=["basic", "digest"])
    parser.add_argument("--user")
    parser.add_argument("--password")
    parser.add_argument("--clock", type=int, metavar="GROUPS")
    arguments = parser.parse_args()

    Gst.init(None)
    server = GstRtspServer.RTSPServer()
    server.set_address("127.0.0.1")
    server.set_service(arguments.port)
    factory = GstRtspServer.RTSPMediaFactory()
    if arguments.clock is not None:
        factory.set_launch(Clock.LAUNCH)
        factory.connect("media-configure", Clock(arguments.file, arguments.clock).serve)
    else:
        factory.set_launch(pipeline(arguments.file, arguments.video, arguments.audio))
    if arguments.transport:
        factory.set_protocols(GstRtsp.RTSPLowerTrans.TCP if arguments.transport == "tcp"
                              else GstRtsp.RTSPLowerTrans.UDP)
    if arguments.auth:
        require_login(server, factory, arguments)
    server.get_mount_points().add_factory("/stream", factory)
    server.connect("client-connected", lambda _, client: client.connect(
        "teardown-request", lambda *_: print("teardown", flush=True)))
    assert server.attach(None), "the port cannot be had"
    GLib.MainLoop().run()


if __name__ == "__main__":
    main()
