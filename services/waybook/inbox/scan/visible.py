"""HTML as a reader sees it, and beside it everything that the reader does not see.

The tree is that of a browser's parser (Lexbor). Styles are followed down the tree: what hides an element hides all
below it, what hides text (size, colour, visibility) may be undone further down.
"""

import re

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

from waybook.inbox.intake.charsets import clean_text
from waybook.inbox.scan.css import MAX_SHEET, Declarations, inline_style, sheet_rules
from waybook.inbox.scan.invisible import Hidden, smuggled, strip_invisible
from waybook.inbox.scan.style import Look, apply_style, text_hidden

MAX_HTML = 512 * 1024
MAX_OPEN = 3000
"""Open elements up to which HTML is parsed as a tree; browsers stop at 512 and parsers slow down beyond."""
_BLOCK_NAMES = (
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 "
    "h4 h5 h6 header hr legend li main nav ol option p pre section summary table tbody tfoot thead tr ul"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_UNSEEN_NAMES = (
    "title script style template object embed iframe video audio canvas datalist noframes noembed rp param source "
    "track "
    "map area"
)
_UNSEEN = frozenset(_UNSEEN_NAMES.split())
_NO_END_NAMES = "area base br col embed hr img input link meta param source track wbr p li td tr th"
_NO_END = frozenset(_NO_END_NAMES.split())
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_TEXT_ATTRIBUTES = ("alt", "title", "aria-label", "placeholder", "summary", "content")
_CONTENT = re.compile(r"content\s*:\s*([\"'])((?:(?!\1).){4,2000})\1", re.IGNORECASE)


class Link(msgspec.Struct, frozen=True):
    """A link: the words that carry it and where it leads."""

    text: str
    href: str


class Page(msgspec.Struct, frozen=True):
    """A rendered mail. `text` is what a reader sees; `hidden` what nobody sees, with the way it is hidden."""

    text: str
    hidden: tuple[Hidden, ...] = ()
    links: tuple[Link, ...] = ()
    remote_images: tuple[str, ...] = ()
    defects: tuple[str, ...] = ()


def render(html: str) -> Page:
    """`html` as a reader sees it. Never raises; HTML that no browser would show in full yields a defect."""
    defects = []
    if len(html) > MAX_HTML:
        defects.append(f"HTML of {len(html)} characters, read up to {MAX_HTML}")
        html = html[:MAX_HTML]
    if _deepest(html) > MAX_OPEN:
        return Page(_flat(html), (Hidden("too_deep", _flat(html)),), defects=(*defects, "HTML nested too deeply"))
    walk = _Walk(LexborHTMLParser(html))
    return walk.page(defects)


def _deepest(html: str) -> int:
    """Upper estimate of how many elements are open at once."""
    if html.count("<") < MAX_OPEN:
        return 0
    depth = deepest = 0
    for match in _TAG.finditer(html):
        if match[1]:
            depth = max(0, depth - 1)
        elif match[2].lower() not in _NO_END:
            depth += 1
            deepest = max(deepest, depth)
    return deepest


def _flat(html: str) -> str:
    return re.sub(r"<[^>]*>", " ", html)[:MAX_SHEET]


class _Walk:
    """One pass over a tree, without recursion: mails nest deeper than Python does."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._out: list[str] = []
        self._hidden: list[Hidden] = []
        self._links: list[Link] = []
        self._begun = False
        self._images: list[str] = []
        self._styled = _styled(tree)
        root = tree.root
        if root is not None:
            self._run(root.parent or root)

    def page(self, defects: list[str]) -> Page:
        lines = "\n".join(" ".join(line.split()) for line in "".join(self._out).split("\n"))
        text = re.sub(r"\n{3,}", "\n\n", lines).strip()
        text = clean_text(text)
        kept = [h for h in self._hidden if h.text.strip()][:200]
        hidden = (*kept, *smuggled(text))
        return Page(strip_invisible(text), hidden, tuple(self._links), tuple(self._images), tuple(defects))

    def _keep(self, how: str, text: str) -> None:
        """Puts aside text that is not seen."""
        self._hidden.append(Hidden(how, text[:20_000], self._begun))

    def _run(self, root: LexborNode) -> None:
        stack: list[tuple[LexborNode | None, Look, str]] = [(root, Look(), "")]
        while stack:
            node, look, after = stack.pop()
            if node is None:
                self._out.append(after)
                continue
            if node.next is not None and node is not root:
                stack.append((node.next, look, ""))
            tag = node.tag or ""
            if node.is_text_node:
                self._text(node, look)
            elif node.is_comment_node:
                self._keep("comment", node.comment_content or "")
            elif tag:
                self._element(node, tag, look, stack)

    def _text(self, node: LexborNode, look: Look) -> None:
        text = node.text_content or ""
        if text.isspace():
            self._out.append(" ")
            return
        how = text_hidden(look)
        if how is None:
            self._begun = True
            self._out.append(text if "\n" not in text else " ".join(re.split(r"\s*\n\s*", text)))
        else:
            self._keep(how, text)

    def _element(
        self, node: LexborNode, tag: str, look: Look, stack: list[tuple[LexborNode | None, Look, str]]
    ) -> None:
        attributes = node.attributes
        if tag == "br":
            self._out.append("\n")
        style: Declarations = {}
        if attributes or self._styled:
            self._attributes(tag, attributes)
            style = self._style(node, tag, attributes)
        how = _hidden_by_markup(tag, attributes)
        inside = how or (apply_style(look, tuple(style.items())) if style else look)
        if isinstance(inside, str):
            self._hide(node, tag, inside)
            return
        look = inside
        if tag == "a":
            self._link(node, attributes.get("href") or "")
        if tag in _BLOCKS:
            self._out.append("\n")
            stack.append((None, look, "\n"))
        elif tag in ("td", "th"):
            stack.append((None, look, " "))
        if tag == "blockquote":
            self._out.append("> ")
        child = node.first_child
        if child is not None:
            stack.append((child, look, ""))

    def _style(self, node: LexborNode, tag: str, attributes: dict[str, str | None]) -> Declarations:
        style: Declarations = {}
        for name, declared in (
            ("color", "color"),
            ("text", "color"),
            ("bgcolor", "background-color"),
            ("background", "background-image"),
        ):
            if (name != "color" or tag == "font") and (value := attributes.get(name)):
                style[declared] = (f"url({value})" if name == "background" else value, False)
        if self._styled and (rules := self._styled.get(node.mem_id)):
            style.update(rules)
        if text := attributes.get("style"):
            inline = inline_style(text)
            style.update({k: v for k, v in inline.items() if v[1] or not style.get(k, ("", False))[1]})
        return style

    def _attributes(self, tag: str, attributes: dict[str, str | None]) -> None:
        for name in _TEXT_ATTRIBUTES:
            value = attributes.get(name)
            if value and len(value) > 3 and (name != "content" or attributes.get("name")):
                self._keep(f"{name}_attribute", value)
        if tag == "img" and (source := attributes.get("src")) and source.lower().startswith(("http:", "https:", "//")):
            self._images.append(source[:2000])
        if tag == "input" and attributes.get("type") == "hidden" and attributes.get("value"):
            self._keep("hidden_input", attributes["value"] or "")

    def _hide(self, node: LexborNode, tag: str, how: str) -> None:
        text = _flat(node.html or "") if tag == "template" else node.text(deep=True, separator=" ") or ""
        if tag in ("style", "script"):
            found = " ".join(m[2] for m in _CONTENT.finditer(text[:MAX_SHEET]))
            comments = " ".join(re.findall(r"/\*(.{4,2000}?)\*/", text[:MAX_SHEET], re.DOTALL))
            self._keep(tag, f"{found} {comments}")
            return
        self._keep(how, text)
        for inner in node.css("[alt],[title],[aria-label]"):
            for name in ("alt", "title", "aria-label"):
                if value := inner.attributes.get(name):
                    self._keep(how, value)

    def _link(self, node: LexborNode, href: str) -> None:
        if href.strip() and len(self._links) < 500:
            self._links.append(Link((node.text(deep=True) or "").strip()[:300], href.strip()[:2000]))


def _hidden_by_markup(tag: str, attributes: dict[str, str | None]) -> str | None:
    if tag in _UNSEEN:
        return tag
    if "hidden" in attributes:
        return "marked_hidden"
    if (attributes.get("aria-hidden") or "").strip().lower() == "true":
        return "aria_hidden"
    return "closed_dialog" if tag == "dialog" and "open" not in attributes else None


def _styled(tree: LexborHTMLParser) -> dict[int, Declarations]:
    """For each element that style sheets touch, the declarations that win."""
    sheets = [node.text(deep=True) or "" for node in tree.css("style")]
    rules = [rule for sheet in sheets[:20] for rule in sheet_rules(sheet)]
    ordered = sorted(enumerate(rules), key=lambda pair: (pair[1].specificity, pair[0]))
    found: dict[int, Declarations] = {}
    for _, rule in ordered[:500]:
        for node in _matching(tree, rule.selector):
            style = found.setdefault(node.mem_id, {})
            style.update({k: v for k, v in rule.declarations.items() if v[1] or not style.get(k, ("", False))[1]})
    return found


def _matching(tree: LexborHTMLParser, selector: str) -> list[LexborNode]:
    """What a selector selects; of one that asks for a state or a made-up element, the element itself."""
    bare = re.sub(r"::[\w-]+|:(?:hover|active|focus|visited|link|before|after|first-line|first-letter)\b", "", selector)
    if bare != selector:
        return []
    try:
        return tree.css(selector)[:5000]
    except Exception:  # noqa: BLE001 - the selector parser raises errors of its own on what it does not know
        return []
