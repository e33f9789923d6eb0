"""Hidden text as evidence: what is only hidden, and what was hidden because it gives orders.

Honest mails hide text too (previews, texts for other screens), so that hiding alone is a remark. Hidden text that
speaks to the machine, or sets it a task after the visible mail has begun, is an attack.
"""

import re

from waybook.inbox.scan.findings import Finding
from waybook.inbox.scan.fold import fold
from waybook.inbox.scan.invisible import Hidden
from waybook.inbox.scan.phrases import find_phrases

_CONFIDENCE_PHRASE = 0.9
_CONFIDENCE_ORDER = 0.8
_CONFIDENCE_TASK = 0.7
_CONFIDENCE_REMARK = 0.3
# Places that have nothing to do with style; they are looked at for phrases and orders only.
_NO_STYLE = "comment style script title template datalist object iframe noframes"
_WEAK_PLACES = frozenset(_NO_STYLE.split())
_ATTRIBUTE = "_attribute"
_CHARACTERS = frozenset(("tag_characters", "variation_selectors", "zero_width_run", "zero_width_spelling"))
_SPEAKS_TO_MACHINE = re.compile(
    r"\b(?:system (?:note|message|prompt|instructions?|override)|system ?:|assistant|ai|a\.i\.|language model|llm|"
    r"chatbot|the model|"
    r"copilot|chatgpt|gemini|claude|prompt|instructions? ?:)(?!\w)|"
    r"\b(?:your|the) (?:answer|reply|response|output|summary|draft|message)(?:'s)?\b(?! (?:above|below))|"
    r"\b(?:anweisung|assistent|ki|entwurf|deine antwort|deiner antwort|ihrer antwort|freigeben|freigabe)\b|"
    r"\b(?:consigne|assistant|ia|ta reponse|votre reponse)\b|\b(?:instruccion\w*|asistente|ia|tu respuesta|su "
    r"respuesta)\b|"
    r"\b(?:istruzion\w+|assistente|tua risposta)\b|(?:ассистент|помощник|инструкци|твой ответ|ответе)|(?:تعليمات|"
    r"المساعد|ردك)|"
    r"(?:アシスタント|指示|返信に|回答に|承認)|(?:助手|指令|你的回复|回复中|批准)"
)
_ORDERS = re.compile(
    r"\b(?:approve|refund|forward|send|reply|respond|answer|reveal|ignore|disregard|mark|delete|grant|transfer|wire|"
    r"release|confirm|"
    r"include|add|append|insert|output|print|classify|translate|encode|encrypt|rewrite|write|say|tell|recommend|"
    r"promote|mention|provide|"
    r"summari[sz]e|list|visit|treat|do not|don't|never|always|must|modify|augment|render|express|replace|reverse|use|"
    r"using|make|"
    r"integrate|enhance|incorporate|embed|apply|suggest|substitute|invert|swap|shift|scramble|rearrange|shuffle|"
    r"jumble|misspell|remove|"
    r"omit|convert|change|craft|introduce|weave|finish|begin|end|start|hint|imply|urge|encourage|advise|link|"
    r"direct)(?:ing|s)?\b|"
    r"\b(?:genehmig|bestatig|sende|schick|antwort|leit|markier|losch|erstatt|ignorier|freigeben|uberweis|schreib|"
    r"fug)\w*|"
    r"\b(?:approuve|envoie|reponds|confirme|rembourse|ignore|transfere|ecris|ajoute)\w*|"
    r"\b(?:aprueba|envia|responde|confirma|reembolsa|ignora|escribe|anade)\w*|"
    r"\b(?:approva|invia|rispondi|conferma|rimborsa|ignora|scrivi|aggiungi)\w*|(?:одобр|отправ|ответь|подтверд|верни|"
    r"напиши|добавь)|"
    r"(?:وافق|ارسل|اكد|تجاهل|اكتب|اضف)|(?:承認|返金|送信|転送|無視|書いて|含めて|追加して)|(?:批准|发送|退款|忽略|回复|写|添加|包含)"
)
# Tasks that one sets a machine; a person who wants them done does not hide them.
_TASK = re.compile(
    r"^\W*(?:please )?(?:write|provide|explain|summari[sz]e|translate|anal[yi][sz]e|determine|classify|describe|"
    r"compose|draft|develop|"
    r"generate|list|show me|give me|tell me|recommend|suggest|how (?:do|can|would|to)|what(?:'s| is| are| were| "
    r"movies)|"
    r"who (?:wrote|is|was)|break down|can you|could you|help me|create|is this|which|why|define|calculate|solve|"
    r"outline|compare|encode|"
    r"decode|encrypt|reply|respond|answer|rewrite|design|identify|evaluate|find|schreib|erklar|ubersetz|fass|"
    r"explique|ecris|traduis|"
    r"resume|explica|escribe|traduce|spiega|scrivi|traduci)\b"
)
_COMMENT_LEAD = re.compile(
    r"^\W*(?:system|assistant|ai|instructions?|ignore|important|note to|attention|override|admin|prompt|anweisung|"
    r"hinweis an|"
    r"consigne|instruccion|istruzion\w|指示|指令|инструкци|تعليمات)\b ?\w*(?: \w+){0,3} ?[:,-]"
)
_BUILD_COMMENT = re.compile(
    r"^\W*(?:\[if |\[endif|<!\[|begin |end |start |stop |/?\w+$|\d|mobile|desktop|preheader|hidden preheader|header|"
    r"footer|body|content)"
)


def hidden_findings(hidden: tuple[Hidden, ...], visible: str) -> list[Finding]:
    """What the hidden texts of a mail mean. `visible` is the text that a reader sees."""
    seen = set(re.findall(r"\w+", fold(visible)))
    found = [finding for item in hidden if (finding := _finding(item, seen)) is not None]
    return sorted(found, key=lambda f: -f.confidence)[:20]


def _finding(item: Hidden, seen: set[str]) -> Finding | None:
    folded = fold(item.text[:4000])
    if not folded:
        return None
    if phrases := find_phrases(item.text, hidden=True):
        return Finding("injection", phrases[0].kind, _CONFIDENCE_PHRASE, item.how, phrases[0].excerpt)
    if item.how in _CHARACTERS:
        return Finding("smuggling", item.how, _CONFIDENCE_ORDER, item.how, item.text[:200])
    words = re.findall(r"\w+", folded)
    if len(words) > 3 and sum(1 for word in words if word not in seen) <= len(words) / 3:
        return None  # a copy of what is shown, for other screens
    if item.how == "comment" and _BUILD_COMMENT.match(folded):
        return None
    if item.how == "comment" and _COMMENT_LEAD.match(folded):
        return Finding("smuggling", "hidden_orders", _CONFIDENCE_ORDER, item.how, folded[:200])
    return _style_finding(item, folded, len(words))


def _style_finding(item: Hidden, folded: str, words: int) -> Finding | None:
    sample = folded[:600]
    if _SPEAKS_TO_MACHINE.search(sample) and _ORDERS.search(sample) and item.how not in ("style", "script"):
        return Finding("smuggling", "hidden_orders", _CONFIDENCE_ORDER, item.how, folded[:200])
    if item.how in _WEAK_PLACES or item.how.endswith(_ATTRIBUTE) or words < 2:
        return None
    if item.late and words > 3 and _TASK.match(folded):
        return Finding("smuggling", "hidden_task", _CONFIDENCE_TASK, item.how, folded[:200])
    return Finding("hidden", item.how, _CONFIDENCE_REMARK, item.how, folded[:200])
