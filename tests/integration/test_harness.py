"""Tests of the harness itself."""

import pytest

from harness.complaints import complaints
from harness.media_playlist import MediaPlaylist


def test_only_the_one_line_that_is_not_ours_is_left_out():
    others = "framelane: no\nWarning: using insecure memory! Or not.\nwarning: using insecure memory!\n"
    assert complaints("Warning: using insecure memory!\n" + others) == others


def test_a_playlist_that_changes_its_version_does_not_follow():
    def playlist(version, number):
        return MediaPlaylist(f"#EXTM3U\n#EXT-X-VERSION:{version}\n#EXT-X-TARGETDURATION:1\n"
                             f"#EXT-X-MEDIA-SEQUENCE:{number}\n#EXTINF:1.0,\nindex-{number}.ts\n")

    playlist(3, 8).require_follows(playlist(3, 7))
    with pytest.raises(AssertionError, match="EXT-X-VERSION has changed"):
        playlist(6, 8).require_follows(playlist(3, 7))
