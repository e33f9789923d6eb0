"""HTML is read as a browser shows it."""

import time

import pytest

from waybook.inbox.scan.visible import render

HIDDEN = [
    '<div style="display:none">gone</div>',
    '<div style="display:none"><p style="display:block">gone</p></div>',
    '<div style="d\\69splay:none">gone</div>',
    '<div style="display:/**/none">gone</div>',
    '<div style="DISPLAY : NONE !important; display:block">gone</div>',
    "<style>.h{display:none}</style><p class=h>gone</p>",
    "<style>@media screen{p#x{display:none!important}}</style><p id=x style='display:block'>gone</p>",
    "<style>@media (min-width:300px){.h{visibility:hidden}}</style><p class='a h'>gone</p>",
    "<style>p:nth-child(2), #q > i{display:none}</style><p>shown</p><p>gone</p>",
    "<div hidden>gone</div>",
    "<div aria-hidden=true>gone</div>",
    '<div style="visibility:hidden">gone</div>',
    '<div style="opacity:0">gone<b style="opacity:1">gone</b></div>',
    '<div style="opacity:0.2"><div style="opacity:0.2">gone</div></div>',
    '<span style="font-size:0">gone</span>',
    '<span style="font:0/0 a">gone</span>',
    '<div style="font-size:10px"><span style="font-size:0.1em">gone</span></div>',
    '<font color="white">gone</font>',
    '<span style="color:#fefefe">gone</span>',
    '<span style="color:rgb(255 255 255)">gone</span>',
    '<div style="background:#000"><span style="color:#010101">gone</span></div>',
    '<table bgcolor="#336699"><tr><td><font color="#336699">gone</font></td></tr></table>',
    '<span style="color:transparent">gone</span>',
    '<span style="color:rgba(0,0,0,.01)">gone</span>',
    '<div style="position:absolute;left:-9999px">gone</div>',
    '<div style="position:fixed;top:-500em">gone</div>',
    '<div style="text-indent:-9999px">gone</div>',
    '<div style="margin-left:-5000px">gone</div>',
    '<div style="transform:translateX(-2000px)">gone</div>',
    '<div style="transform:scale(0)">gone</div>',
    '<div style="max-height:0;overflow:hidden">gone</div>',
    '<div style="width:0px;overflow:hidden">gone</div>',
    '<div style="position:absolute;clip:rect(0,0,0,0)">gone</div>',
    '<div style="clip-path:inset(100%)">gone</div>',
    "<!-- gone -->",
    "<title>gone</title>",
    "<script>gone</script>",
    "<template>gone</template>",
    '<img alt="gone">',
    "<dialog>gone</dialog>",
    '<p>shown<div style="display:none">gone',
    "<object>gone</object>",
]
SHOWN = [
    '<div style="visibility:hidden"><b style="visibility:visible">kept</b></div>',
    '<span style="font-size:0"><b style="font-size:14px">kept</b></span>',
    '<p style="background-color: white; color:#222">kept</p>',
    '<td style="background:#000"><font color="#ffffff">kept</font></td><p style="background:#111;color:#fff">kept</p>',
    "<style>body{background-color:#111;color:#eee}</style><body>kept</body>",
    '<table background="x.png"><tr><td style="color:#fff">kept</td></tr></table>',
    "<style>@media print{p{display:none}}</style><p>kept</p>",
    "<style>@media (max-width:600px){p{display:none}}</style><p>kept</p>",
    '<div style="dis/**/play:none">kept</div>',
    "<noscript>kept</noscript>",
    "<!--[if !mso]><!-->kept<!--<![endif]-->",
    '<div style="margin-left:-5px;text-indent:-20px">kept</div>',
    '<p style="mso-hide:all">kept</p>',
    '<p style="display:none;display:block">kept</p>',
]


@pytest.mark.parametrize("html", HIDDEN)
def test_what_a_browser_hides_is_not_read(html: str) -> None:
    """It is kept apart as evidence."""
    page = render(html)
    assert "gone" not in page.text
    assert any("gone" in h.text for h in page.hidden) or "script" in html


@pytest.mark.parametrize("html", SHOWN)
def test_what_a_browser_shows_is_read(html: str) -> None:
    """Nothing honest is lost."""
    assert "kept" in render(html).text


def test_words_and_lines_are_as_they_are_shown() -> None:
    """Tags inside a word do not divide it, blocks begin lines, quotes are marked."""
    page = render(
        "<p>ig<b></b>nore&nbsp;me</p><ul><li>a<li>b</ul><blockquote>said</blockquote><a href='https://x.example/y'>link</a>"
    )
    assert page.text == "ignore me\n\na\n\nb\n\n> said\nlink"
    assert [(link.text, link.href) for link in page.links] == [("link", "https://x.example/y")]


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 100_000 + "x",
        "<b>" * 50_000 + "x",
        "<p>x" * 50_000,
        "<table><tr><td>" * 4000 + "x",
        "<" * 200_000,
        "<!--" * 50_000,
    ],
)
def test_no_html_takes_long(html: str) -> None:
    """Hostile nesting is bounded."""
    begun = time.perf_counter()
    assert render(html) is not None
    assert time.perf_counter() - begun < 5
