"""Injection phrases in English."""

from waybook.inbox.scan.phrase_rule import PhraseRule, override, rule

_EN_MACHINE = (
    r"(?:ai|a\.i\.|assistant|chatbot|bot|language model|llm|gpt|chatgpt|claude|gemini|copilot|ai agent|auto-?responder)"
)
_EN_DEED = (
    r"(?:approve|refund|forward|send|e-?mail|reply|respond|answer|say|write|tell|reveal|mark|delete|ignore|disregard|"
    r"grant|"
    r"transfer|pay|wire|release|accept|confirm|include|add|output|print|classify|label|set|treat|follow|execute|do not|"
    r"don't|never|always|must)"
)

ENGLISH: tuple[PhraseRule, ...] = (
    # English
    override(
        "en",
        r"ignore|ignoring|disregard|disregarding|forget|forgetting|override|overrule|bypass|discard|"
        r"pay no attention to|do not (?:follow|obey|listen to)|don't (?:follow|obey|listen to)|stop following",
        r"(?<!my )(?<!our )(?:previous|previously|prior|above|earlier|preceding|foregoing|all|any|every|your|existing|"
        r"initial|original|system)",
        r"instructions?|prompts?|directives?|guidelines|guardrails|programming|system messages?|commands given|"
        r"rules (?:you|given|above|set)|training|everything (?:above|before)",
    ),
    rule(
        "override", "en", "ignore, disregard, forget",
        r"\b(?:ignore|disregard|forget) (?:all |any |everything )?(?:(?:of )?(?:the |your )?"
        r"(?:previous|prior|preceding|above) (?:instructions|prompts|directions|commands|rules|orders|context|text)|"
        r"everything (?:above|before|you(?:'ve| have)? (?:been told|were told|know)|that (?:came|was said) before))",
    ),
    rule(
        "role_takeover", "en", "you are, you're, youre",
        r"\b(?:you are|you're|youre) (?:now|from now on|no longer) (?:in |an? |the |my |acting |going to |operating |"
        r"running |"
        r"under )*(?:\w+[ -]){0,3}?(?:mode|assistant|administrator|admin|root|system|model|ai|bot|dan|jailbr\w+|"
        r"unrestricted|unfiltered|uncensored|developer|bound|restricted|limited|evil)\b",
    ),
    rule(
        "role_takeover", "en", "act, pretend, behave, roleplay",
        r"\b(?:act|behave|respond|pretend|roleplay)(?: now)? (?:as|like|to be|that you are|you are) (?:if you (?:are|"
        r"were) )?"
        r"(?:an? |the |my )?(?:\w+[ -]){0,2}?(?:unrestricted|unfiltered|uncensored|jailbroken|dan\b|system "
        r"administrator|"
        r"root user|developer mode|ai (?:without|with no)|different (?:ai|assistant)|evil)",
    ),
    rule(
        "standing_order", "en", "from now, from this, henceforth, going forward, starting now",
        r"\b(?:from (?:now on|this (?:point|moment) (?:on|onwards?|forward))|henceforth|going forward|starting now),? "
        r"(?:you (?:will|must|shall|should|are to) |please |always |simply |just )*(?:approve|accept|grant|confirm|"
        r"obey|"
        r"comply|answer only|reply only|respond only|ignore|act as|never (?:refuse|ask|mention)|treat (?:all|every|"
        r"me))\b",
    ),
    rule(
        "new_instructions", "en", "instruction, instructions, prompt, message",
        r"(?:^|[|.!?>#*\]\[(-] ?|\bthe (?=\w+ (?:system|ai|assistant)))(?:new|updated|revised|additional|important|"
        r"urgent|real|actual|secret|hidden|system|"
        r"admin|developer|override) (?:system |ai |assistant |admin )?(?:instructions?|prompt|directives?)"
        r"(?: (?:for|to) (?:the |your |any )?(?:ai|assistant|model|bot|agent|you))? ?(?::|->|=>|- )",
    ),
    rule(
        "system_header", "en", "system, assistant, instruction, inst, im_start, prompt, role",
        r"<\|?(?:im_start|im_end|system|endoftext|start_header_id|eot_id)\|?>|\[/?inst\]|<</?sys>>|"
        r"###? ?(?:system|instructions?|new instructions?)(?: prompt| message)? ?:|</?(?:system|assistant)(?:_prompt|"
        r"_message)?>|"
        r"\bbegin (?:new )?(?:system|admin) (?:prompt|message|instructions?|override)|\"role\" ?: ?\"(?:system|"
        r"assistant|developer)\"|\bsystem (?:prompt|override|message|instructions?) ?:|"
        r"\[(?:system|assistant|admin|developer)(?: (?:message|note|prompt|override|instructions?))?\]",
    ),
    rule(
        "prompt_exfiltration", "en", "prompt, instructions",
        r"\b(?:reveal|show|print|output|repeat|display|send|tell|give|share|leak|dump|quote|paste|forward|disclose|"
        r"summari[sz]e)"
        r"(?: me| us)?~(?:your|the|its)(?: own| full| entire| exact| hidden| secret| initial| original| internal| "
        r"confidential| "
        r"underlying)*(?: system| developer| base)? (?:system prompt|prompt|instructions (?:above|you (?:were|have|"
        r"got|received))|"
        r"initial instructions|hidden instructions|system instructions|system message)",
    ),
    rule(
        "machine_addressed", "en",
        "assistant, ai, bot, chatbot, llm, model, gpt, copilot, agent, responder, claude, gemini",
        rf"(?:^|[|.!?>:*\[(\"'-] ?)(?:(?:attention|dear|hey|hello|hi|note|message|instructions?|important|"
        rf"reminder|memo)"
        rf"(?: (?:to|for))?[ ,:]*(?:the |any |all |our |your )?(?:\w+ ){{0,2}}?|the |our )?{_EN_MACHINE}s?"
        rf"(?! (?:manager|director|professor|editor|principal|coach|who|that|to)\b)(?: \w+){{0,2}}? ?[:,;.!-]+ ?"
        rf"(?:please |you (?:must|should|will|need to|have to|are to) |kindly |now |just |simply )*{_EN_DEED}\b",
    ),
    rule(
        "machine_addressed", "en", "assistant, ai, bot, chatbot, llm, model, gpt, copilot",
        r"\b(?:if you are|as|since you are|you are) an? (?:ai|a\.i\.|language|llm|large language|automated|virtual)"
        r"(?: (?:language )?(?:model|assistant|agent|bot|system))?\b[^.?]{0,40}?\b(?:must|should|need to|please|have "
        r"to|are required "
        r"to|approve|forward|send|reply|ignore|include)\b",
    ),
    rule(
        "approval_order", "en", "approv, review, confirmation, authoriz, authoris",
        r"\b(?:auto-?)?(?:approve|approved|authori[sz]e|send|release|grant|process)\b(?: (?!not)\w+){0,5}? without "
        r"(?:any |a |further |prior |manual |additional |human )*(?:review|approval|human|confirmation|checking|"
        r"verification|"
        r"asking (?:the |a |your )?(?:owner|human|user|operator|team))\b",
    ),
    rule(
        "approval_order", "en", "approv",
        r"\b(?:auto-?approve|approve (?:everything|all (?:of )?(?:my |the |these )?(?:requests|refunds|mails|emails|"
        r"messages)|"
        r"this (?:reply|message|draft|mail|email) automatically))|\b(?:mark|flag|label|classify|treat|set) (?:this|"
        r"the|my|it)"
        r"(?: (?:\w+)){0,4}? (?:as|to) (?:\w+ ){0,2}?(?:approved|pre-?approved|verified|trusted|not spam|safe|"
        r"resolved)\b",
    ),
    rule(
        "concealment", "en", "user, owner, human, operator, recipient, holder, supervisor, administrator, team",
        r"\b(?:do not|don't|never) (?:tell|inform|notify|alert|mention (?:this|it|any of this) to|reveal (?:this|it) "
        r"to|show "
        r"(?:this|it) to|let) (?:the |your |any )?(?:user|owner|human|operator|recipient|account holder|supervisor|"
        r"administrator|team)s?\b",
    ),
    rule(
        "exfiltration", "en", "mailbox, inbox, password, credential, customer, secret, key, token, history, previous",
        r"\b(?:forward|send|e-?mail|export|copy|upload|exfiltrate|bcc|post)\b(?: (?!me\b|back\b)\w+){0,4}? (?:this |"
        r"the |your |entire |"
        r"whole |all |every )+(?:\w+ ){0,2}?(?:mailbox|inbox|conversation history|chat history|customer (?:list|data|"
        r"records|"
        r"database)|credentials|passwords|api keys?|secrets|access tokens?|previous (?:e-?mails|"
        r"messages))\b[^.?]{0,30}? to \S+",
    ),
    rule(
        "exfiltration", "en", "password, credentials, token, secret",
        r"\b(?:reply|respond|answer) with (?:the |your |all |an? )*(?:\w+ ){0,2}?(?:passwords?|credentials|api keys?|"
        r"secrets?|"
        r"access tokens?|admin \w+)\b",
    ),
    rule(
        "fake_authority", "en", "confirmed, approved, verified, authorized, authorised, trusted, instruction, "
            "untrusted",
        r"\[(?:confirmed|approved|verified|authori[sz]ed|trusted|pre-?approved|signed off)(?: facts?| content| text)?"
        r"(?: (?:by|from) (?:the )?(?:owner|admin\w*|operator|system|manager|management|supervisor|team))?\]|"
        r"\b(?:confirmed|approved|authori[sz]ed) by (?:the )?(?:owner|operator|administrator|system)\]",
    ),
    rule(
        "delimiter_escape", "en", "</, ]], end, begin",
        r"</ ?(?:untrusted|user|email|mail|message|customer|external|data|document|context|input|content|quoted)"
        r"[_-](?:\w+[_-]?)*>|</ ?(?:untrusted|instructions|prompt|context|user|document)>|"
        r"-{2,} ?(?:end|begin) (?:of )?(?:untrusted|user|customer|external|system|e-?mail|trusted|email)[ _-]*"
        r"(?:content|input|message|e-?mail|data|prompt|instructions|block)",
    ),
    rule(
        "decode_and_follow", "en", "decode, base64, rot13",
        r"\b(?:decode|decipher|decrypt|unscramble|translate)\b[^.?\n]{0,40}? (?:and|then) (?:then )?(?:follow(?! up)|"
        r"execute|obey|run|do|"
        r"carry out|comply|act)",
    ),
    rule(
        "jailbreak", "en", "dan, jailbreak, developer, guardrails, restrictions, filter, mode",
        r"\bdo anything now\b|\b(?:enable|activate|enter|switch (?:in)?to|turn on) (?:the )?(?:developer|dan|"
        r"jailbreak|god|debug|"
        r"maintenance|admin|unrestricted|sudo) mode\b|\b(?:without|no|remove|disable|ignore) (?:all |any |your "
        r")?(?:content |safety )?"
        r"(?:guardrails|safety (?:rules|filters|restrictions)|content polic\w+)",
    ),
    rule(
        "override", "en", "instructions, rules, guidance, guidelines, prompt",
        r"\b(?:previous|prior|earlier|old|original|initial|above) (?:instructions|rules|guidelines|prompts?|"
        r"directives) (?:are|is) (?:now )?"
        r"(?:void|invalid|cancel\w+|revoked|superseded|obsolete|overridden|replaced)|\b(?:your|the|all) (?:previous|"
        r"prior|earlier|original|initial|system) "
        r"(?:instructions|rules|guidelines|prompts?) (?:no longer|do not|don't) (?:apply|count|matter)|"
        r"\b(?:ignore|disregard|forget|stop following|do not follow|override) (?:all )?(?:your |the )?(?:prior|"
        r"previous|earlier|above) (?:guidance|rules)",
    ),
    rule(
        "system_header", "en", "system:, system :, admin:, developer:, instruction",
        r"(?:^|[|>#*\[(-] ?)(?:system|admin|developer) ?: ?[^|]{0,60}?\b(?:approve\w*|authori[sz]e\w*|refund\w*|"
        r"ignore|you (?:are|must|will|should)|verified|"
        r"forward|grant\w*|comply|obey|override|do not|bypass)\b",
    ),
    rule(
        "prompt_exfiltration", "en", "prompt, above, verbatim, instructions",
        r"\bwhat (?:is|are|was|were) your (?:system|initial|hidden|original|secret|exact) (?:prompt|instructions)|"
        r"\b(?:repeat|print|output|copy) (?:the |all )?"
        r"(?:text|words|everything|content|sentences|message) (?:above|before this)|\b(?:prompt|instructions) "
        r"(?:verbatim|word for word)",
    ),
    rule(
        "approval_order", "en", "review, approval, check, confirmation",
        r"\b(?:skip|bypass|omit|ignore|circumvent|avoid) (?:the |any |all )?(?:human|manual|approval|owner'?s?|"
        r"operator)(?: \w+)? ?"
        r"(?:review|step|check|approval|queue|confirmation)?[^.?]{0,12}? (?:and (?:send|approve|refund|process|reply|"
        r"release)|for this "
        r"(?:ticket|reply|mail|e-?mail|message|request))|\bno (?:human |further |manual |additional )?(?:review|"
        r"approval|confirmation) (?:is )?"
        r"(?:needed|required|necessary)[^.?]{0,20}?\b(?:send|approve|release|process|refund|reply)",
    ),
    rule(
        "concealment", "en", "owner, user, human, operator",
        r"\b(?:do not|don't|never) (?:show|display|forward|reveal|mention) (?:this|the|my) (?:message|mail|e-?mail|"
        r"text|note|request) to (?:the |your |any )?"
        r"(?:owner|user|human|operator|supervisor|administrator)s?\b",
    ),
    rule(
        "role_takeover", "en", "pretend, obey, act as",
        r"\bpretend (?:that )?(?:you are|you're|to be) (?:the |an? |my )?(?:\w+ )?(?:administrator|admin|owner|"
        r"operator|root|system|developer|supervisor)\b|"
        r"\byou (?:must |will |shall |now |only )*obey (?:me|my|only|this)\b|\bact as (?:if you were )?(?:the |an? "
        r")?(?:administrator|admin|root|system)\b",
    ),
    rule(
        "exfiltration", "en", "other customers, other users, api key, customer list, customer data, credentials, "
            "password, customer database, in your reply, in your response, "
        "in your answer, to your reply, to your response, to your answer, into your",
        r"\b(?:last|previous|recent|latest|all)(?: \w+){0,3}? (?:messages|e-?mails|mails|conversations|tickets|"
        r"orders|data) (?:from|of|with) (?:the |your )?other "
        r"(?:customers|users|clients|people)|\b(?:include|attach|add|send|reveal|give)(?: me)? (?:the |your |full |"
        r"entire |complete |all )+(?:api keys?|customer (?:list|"
        r"database|data|records)|credentials|passwords?|secrets?)\b[^.?]{0,12}? (?:in|to|into|with) (?:your|the) "
        r"(?:reply|response|answer|message)|"
        r"\b(?:add|include|insert|render|put|embed|append|show) (?:the following|this|these|an?|the) (?:\w+ "
        r")?(?:link|image|url|picture|script|html|markdown)\b[^.?]{0,12}? "
        r"(?:in|to|into|at the end of) (?:your|the) (?:reply|response|answer|draft|summary)",
    ),
    rule(
        "machine_addressed", "en", "summari, classify, labelling, labeling, translating, processing",
        r"\b(?:when|while|before|after|if) (?:you (?:are )?)?(?:summari[sz]ing|summari[sz]e|classifying|classify|"
        r"labell?ing|triaging) (?:this|the|my) (?:e-?mail|message|mail|ticket|"
        r"thread|text)\b[^.?]{0,20}?\b(?:say|state|write|claim|include|mention|mark|set|ignore|always|you must|do "
        r"not|use)\b",
    ),
)  # fmt: skip
