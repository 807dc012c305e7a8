"""A monthly report from a dozen slow data pulls, which continues after the last finished one however it was stopped."""
