"""Tests of the harness itself."""

from harness.complaints import complaints


def test_only_the_one_line_that_is_not_ours_is_left_out():
    others = "framelane: no\nWarning: using insecure memory! Or not.\nwarning: using insecure memory!\n"
    assert complaints("Warning: using insecure memory!\n" + others) == others
