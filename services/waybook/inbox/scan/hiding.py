"""Hidden text as evidence: what is only hidden, and what was hidden because it gives orders.

Honest mails hide text too (previews, texts for other screens), so that hiding alone is a remark. Hidden text that
speaks to the machine, or tells somebody to do something after the visible mail has begun, is an attack.
"""

import re

from waybook.inbox.scan.findings import Finding
from waybook.inbox.scan.fold import fold
from waybook.inbox.scan.invisible import Hidden
from waybook.inbox.scan.phrases import find_phrases

_CONFIDENCE_PHRASE = 0.9
_CONFIDENCE_ORDER = 0.8
# Ways of hiding that no preview text needs; `comment` and attributes are looked at for phrases and orders only.
_WEAK_PLACES = frozenset(
    {"comment", "style", "script", "title", "head", "template", "datalist", "hidden_input", "content_attribute"}
)
_SPEAKS_TO_MACHINE = re.compile(
    r"\b(?:system|assistant|ai|a\.i\.|language model|llm|chatbot|the model|agent|copilot|prompt|instructions? ?:)\b|"
    r"\b(?:your|the) (?:answer|reply|response|output|summary|draft|message to)\b|\b(?:in|to) (?:your|the) (?:reply|response|answer|summary|draft)\b|"
    r"\b(?:anweisung|assistent|ki|entwurf|deine antwort|ihre antwort|freigeben|freigabe)\b|\b(?:consigne|assistant|ia|ta reponse|votre reponse)\b|"
    r"\b(?:instruccion\w*|asistente|ia|tu respuesta|su respuesta)\b|\b(?:istruzion\w+|assistente|tua risposta)\b|"
    r"(?:ассистент|помощник|инструкци|твой ответ|ответе)|(?:تعليمات|المساعد|ردك)|(?:アシスタント|指示|返信に|回答に|承認)|(?:助手|指令|你的回复|回复中|批准)"
)
_ORDERS = re.compile(
    r"\b(?:approve|refund|forward|send|reply|respond|answer|reveal|ignore|disregard|mark|delete|grant|transfer|wire|release|confirm|"
    r"include|add|append|insert|output|print|classify|translate|encode|encrypt|rewrite|write|say|tell|recommend|promote|mention|provide|"
    r"summari[sz]e|list|visit|treat|do not|don't|never|always|must|modify|augment|render|express|replace|reverse|use|make)\b|"
    r"\b(?:genehmig|bestatig|sende|schick|antwort|leit|markier|losch|erstatt|ignorier|freigeben|uberweis|schreib|fug)\w*|"
    r"\b(?:approuve|envoie|reponds|confirme|rembourse|ignore|transfere|ecris|ajoute)\w*|\b(?:aprueba|envia|responde|confirma|reembolsa|ignora|escribe|anade)\w*|"
    r"\b(?:approva|invia|rispondi|conferma|rimborsa|ignora|scrivi|aggiungi)\w*|(?:одобр|отправ|ответь|подтверд|верни|напиши|добавь)|"
    r"(?:وافق|ارسل|اكد|تجاهل|اكتب|اضف)|(?:承認|返金|送信|転送|無視|書いて|含めて|追加して)|(?:批准|发送|退款|忽略|回复|写|添加|包含)"
)
_COMMENT_LEAD = re.compile(
    r"^\W*(?:system|assistant|ai|instructions?|ignore|important|note to|attention|override|admin|prompt|anweisung|hinweis an|"
    r"consigne|instruccion|istruzion\w|指示|指令|инструкци|تعليمات)\b ?\w*(?: \w+){0,3} ?[:,-]"
)
_BUILD_COMMENT = re.compile(
    r"^\W*(?:\[if |\[endif|<!\[|begin |end |start |stop |/?\w+$|\d|mobile|desktop|preheader|hidden preheader|header|footer|body|content)"
)


def hidden_findings(hidden: tuple[Hidden, ...], visible: str) -> list[Finding]:
    """What the hidden texts of a mail mean. `visible` is the text that a reader sees."""
    seen = set(re.findall(r"\w+", fold(visible)))
    found: list[Finding] = []
    for item in hidden:
        finding = _orders(item, seen)
        if finding is not None:
            found.append(finding)
    return found[:20]


def _orders(item: Hidden, seen: set[str]) -> Finding | None:
    folded = fold(item.text[:4000])
    if not folded:
        return None
    phrases = find_phrases(item.text, hidden=True)
    if phrases:
        return Finding("injection", phrases[0].kind, _CONFIDENCE_PHRASE, item.how, phrases[0].excerpt)
    if item.how in ("tag_characters", "variation_selectors", "zero_width_run"):
        return Finding("smuggling", item.how, _CONFIDENCE_ORDER, item.how, item.text[:200])
    words = re.findall(r"\w+", folded)
    new = sum(1 for word in words if word not in seen)
    if new <= len(words) / 3 and len(words) > 3:
        return None  # a copy of what is shown, for other screens
    lead = item.how == "comment" and _COMMENT_LEAD.match(folded) and not _BUILD_COMMENT.match(folded)
    if lead or (item.how not in _WEAK_PLACES and _SPEAKS_TO_MACHINE.search(folded) and _ORDERS.search(folded)):
        return Finding("smuggling", "hidden_orders", _CONFIDENCE_ORDER, item.how, folded[:200])
    if (
        item.how == "comment"
        and _SPEAKS_TO_MACHINE.search(folded[:300])
        and _ORDERS.search(folded[:300])
        and not _BUILD_COMMENT.match(folded)
    ):
        return Finding("smuggling", "hidden_orders", _CONFIDENCE_ORDER, item.how, folded[:200])
    return None
