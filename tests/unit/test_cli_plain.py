"""What others wrote, made safe to print; and lengths of time as people say them."""

import pytest

from duetime.cli.plain import span, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("bell\x07 del\x7f", "bell\\x07 del\\x7f"),
        ("c1 \x9b31m \x85", "c1 \\x9b31m \\x85"),
        ("\u202eabc\u202c \u2066x\u2069", "\\u202eabc\\u202c \\u2066x\\u2069"),
        ("zero\u200bwidth\u200d\ufeff\u00ad", "zero\\u200bwidth\\u200d\\ufeff\\xad"),
        ("\u3164\u115f\u034f", "\\u3164\\u115f\\u034f"),
        ("\U000e0041\U000e0100", "\\U000e0041\\U000e0100"),
        ("line\nfeed\ttab\rreturn\u2028\u2029", "line\\nfeed\\ttab\\rreturn\\u2028\\u2029"),
        ("\udcff", "\\udcff"),
    ],
)
def test_what_a_terminal_would_act_on_or_hide_is_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown


@pytest.mark.parametrize("text", ["", "plain [text] :smile:", "größe 漢字 русский עברית", "❤️ 👍", "a\u3000b\u00a0c"])
def test_all_else_shows_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_line_feeds_can_be_kept() -> None:
    assert visible("a\nb\x1b", keep="\n") == "a\nb\\x1b"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.314, "0.31 s"),
        (99.5, "99.50 s"),
        (312.9, "5 min 12 s"),
        (3_600, "1 h 00 min"),
        (11_100, "3 h 05 min"),
        (48 * 3_600, "2 d"),
        (412 * 86_400, "412 d"),
        (2_524 * 86_400, "6.9 y"),
        (-0.5, "-0.50 s"),
    ],
)
def test_lengths_of_time(seconds: float, said: str) -> None:
    assert span(seconds) == said
