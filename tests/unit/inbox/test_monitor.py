"""The reference monitor: what an unattended reply may hold, and to whom it may go."""

import pytest

from waybook.inbox.monitor import Withheld, checked
from waybook.inbox.reply import Reply

OWN = frozenset({"ours.example"})


def reply(text: str = "It ships today.", *, to: str = "ann@x.example", html: str | None = None) -> Reply:
    return Reply(to=(to,), subject="Re: Order", text=text, html=html)


def passed(given: Reply) -> Reply:
    said = checked(given, sender="ann@x.example", own_hosts=OWN)
    assert isinstance(said, Reply)
    return said


@pytest.mark.parametrize(
    "given",
    [
        reply(to="mallory@evil.example"),
        reply("Your verification code is 482913"),
        reply(html="<p>password: hunter22</p>"),
        Reply(to=(), subject="", text="x"),
        Reply(to=("ann@x.example", "mallory@evil.example"), subject="", text="x"),
    ],
)
def test_another_recipient_or_a_secret_withholds_the_reply(given: Reply) -> None:
    assert isinstance(checked(given, sender="ann@x.example", own_hosts=OWN), Withheld)


def test_a_plain_reply_passes_unchanged() -> None:
    assert passed(reply()) == reply()


def test_foreign_links_are_disarmed_and_own_ones_stay() -> None:
    """Also in a plain text, where mail programs make links of what looks like one."""
    text = passed(reply("See https://evil.example/x and https://shop.ours.example/y")).text
    assert text == "See hxxps[:]//evil.example/x and https://shop.ours.example/y"


@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example\\.ours.example/x",
        "https://evil.example%2f.ours.example/",
        "https://evil.example;.ours.example/",
        "https://ours.example@evil.example/",
        "https://ours.example.evil.example",
        "www.evil.example/pay",
        "WWW.evil.example",
    ],
)
def test_no_foreign_link_passes_for_one_of_ours(link: str) -> None:
    """Browsers end a host where a parser of ours does not, and programs add the scheme that is left out."""
    left = passed(reply(f"See {link}, please", html=f'<a href="{link}">x</a>'))
    assert link not in left.text and left.html == "x"
    assert left.text.startswith(("See hxxps[:]//", "See www[.]", "See WWW[.]")) and left.text.endswith(", please")


def test_a_link_of_ours_stays_at_the_end_of_a_sentence() -> None:
    text = "Go to https://ours.example. Or to (www.ours.example/a)!"
    assert passed(reply(text)).text == text


@pytest.mark.parametrize(
    ("html", "left"),
    [
        ('<p onclick="x()">Hi</p><img src="https://t.evil.example/1.gif">', "<p>Hi</p>"),
        ('<a href="https://evil.example/x">here</a>', "here"),
        ('<a href="https://ours.example.evil.example/">here</a>', "here"),
        (
            '<a href="https://ours.example/y?a=1&amp;b=2">there</a>',
            '<a href="https://ours.example/y?a=1&amp;b=2">there</a>',
        ),
        ('<a href="javascript:alert(1)">x</a><script>alert(2)</script>', "x"),
        ("<p>a<embed src=x>b</p><iframe src=y>c</iframe>d", "<p>ab</p>d"),
        ('<b style="background:url(https://t.evil.example)">b</b>', "<b>b</b>"),
    ],
)
def test_what_html_loads_or_leads_to_elsewhere_is_gone_and_its_words_stay(html: str, left: str) -> None:
    assert passed(reply(html=html)).html == left
