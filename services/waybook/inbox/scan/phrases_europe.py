"""Injection phrases in other languages of Europe. Accents are folded away, so none stand here."""

from waybook.inbox.scan.phrase_rule import PhraseRule, override, rule

EUROPE: tuple[PhraseRule, ...] = (
    # German
    override(
        "de",
        r"ignorier\w*|vergiss|vergesst|vergessen sie|missachte\w*|beachte nicht|uberschreib\w*|verwirf|verwerfen sie|"
        r"umgehe\w*|"
        r"lass(?:e)?|hor auf|befolge nicht|befolgen sie nicht|setz\w*",
        r"alle|alles|samtliche|bisherige\w*|vorherige\w*|vorige\w*|obige\w*|fruhere\w*|vorangegangene\w*|"
        r"vorstehende\w*|deine\w*|ihre\w*|"
        r"jegliche|die|gegebene\w*|ursprungliche\w*|zuvor",
        r"anweisung\w*|instruktion\w*|befehl\w*|prompts?\b|systemprompt\w*|vorgaben|richtlinien|regeln (?:die|von "
        r"oben)|systemnachricht\w*",
    ),
    rule(
        "new_instructions", "de", "anweisung, instruktion, befehl",
        r"\b(?:neue|wichtige|aktualisierte|geanderte|dringende|geheime) (?:system)?(?:anweisung|instruktion|"
        r"befehl)\w* ?"
        r"(?:an (?:den|die|das) \w+ ?)?:|\bsystem-?(?:anweisung|befehl|nachricht) ?:",
    ),
    rule(
        "role_takeover", "de", "du bist, sie sind, ab jetzt, ab sofort, ab nun",
        r"\b(?:du bist|sie sind)(?: ab)? (?:jetzt|nun|sofort|fortan|nicht (?:mehr|langer)) (?:im |in |ein\w* |der |"
        r"die |das |mein\w* |als )*"
        r"(?:\w+[ -]){0,2}?\w*(?:modus|administrator|admin|assistent|root|ki|bot|entwickler|uneingeschrankt\w*|"
        r"unzensiert\w*)\b|"
        r"\bab (?:jetzt|sofort|nun) (?:bist du|sind sie|handelst du|antwortest du nur|genehmig\w+|erlaub\w+|stimm\w+ "
        r"allem)\b",
    ),
    rule(
        "prompt_exfiltration", "de", "systemprompt, prompt, anweisungen",
        r"\b(?:zeig\w*|nenn\w*|schick\w*|send\w*|verrat\w*|gib|geben sie|druck\w*|wiederhol\w*)(?: mir| "
        r"uns)?~~(?:systemprompt\w*|"
        r"deine\w* (?:system)?(?:prompt\w*|anweisungen|instruktionen))",
    ),
    rule(
        "approval_order", "de", "freigabe, prufung, bestatig, genehmig, freigeb, erstatt, automatisch",
        r"\b(?:genehmig\w*|bestatig\w*|gib frei|geben sie frei|bewillig\w*|erstatt\w*|freigeben|sende|"
        r"verschick\w*)\b[^.?!]{0,40}? ohne "
        r"(?:jede |weitere |menschliche |eine |manuelle )*(?:prufung|ruckfrage|freigabe|kontrolle|bestatigung|"
        r"menschen)|"
        r"\b(?:sofort|automatisch) (?:freigeben|genehmigen|freischalten)\b|\b(?:genehmig|bestatig)\w* (?:diese|die) "
        r"(?:antwort|nachricht|mail) automatisch",
    ),
    rule(
        "machine_addressed", "de", "assistent, ki-assistent, bot, sprachmodell, ki",
        r"(?:^|[|.!?>:*\[(-] ?)(?:(?:hinweis|anweisung|nachricht|notiz|achtung|hallo|lieber)(?: an)?[ ,:]*(?:den |"
        r"die |das )?)?"
        r"(?:ki(?:-| )?)?(?:assistent\w*|sprachmodell|chatbot|bot|ki|ki-modell)\b ?[:,] ?(?:bitte )?(?:genehmig|"
        r"bestatig|leit|send|schick|antwort|"
        r"markier|losch|ignorier|erstatt|gib|setz|fug|schreib|uberweis|behandl|stuf)\w*",
    ),
    # French
    override(
        "fr",
        r"ignore[rz]?|ignorez|oublie[rz]?|oubliez|neglige[rz]?|ne (?:tiens|tenez) (?:pas|plus) compte d(?:e|es|u)|ne "
        r"(?:suis|suivez) pas|contourne[rz]?|"
        r"fais abstraction de|faites abstraction de|abandonne[rz]?",
        r"precedentes?|anterieures?|ci-dessus|prealables?|tes|vos|ton|votre|donnees|recues|du systeme|initiales|"
        r"d'avant",
        r"instructions?|consignes?|directives?|ordres?|regles|prompt|invite systeme",
        noun_first=True,
    ),
    override(
        "fr",
        r"ignore[rz]?|oublie[rz]?|ne (?:tiens|tenez) (?:pas|plus) compte d(?:e|es|u)|ne (?:suis|suivez) pas|"
        r"contourne[rz]?",
        r"toutes|tous|tes|vos|ces|les|precedentes|l'ensemble",
        r"instructions?|consignes?|directives?|prompt systeme",
    ),
    rule(
        "role_takeover", "fr", "tu es, vous etes, desormais, dorenavant, a partir",
        r"\b(?:tu es|vous etes) (?:maintenant|desormais|dorenavant) (?:en |un |une |le |la |l'|mon |dans )*(?:\w+[ "
        r"-]){0,3}?"
        r"(?:mode|administrateur|admin|assistant|ia|root|systeme|maintenance|developpeur)\b|"
        r"\b(?:a partir de maintenant|desormais|dorenavant),? (?:tu (?:es|dois|vas)|vous (?:etes|devez|allez)|"
        r"approuve\w*|accepte\w*|valide\w*)\b",
    ),
    rule(
        "new_instructions", "fr", "instruction, consigne, directive",
        r"\b(?:nouvelles?|importantes?) (?:instructions?|consignes?|directives?)(?: systeme| pour l'assistant| pour "
        r"l'ia)? ?:|"
        r"\binstructions? (?:systeme|pour l'(?:assistant|ia)) ?:",
    ),
    rule(
        "approval_order", "fr", "approuve, valide, confirme, rembourse, autorise, prompt, instructions",
        r"\b(?:approuve[rz]?|valide[rz]?|confirme[rz]?|rembourse[rz]?|autorise[rz]?|envoie|envoyez)\b[^.?!]{0,40}? "
        r"sans (?:aucune |autre |la moindre )*"
        r"(?:verification|validation|controle|confirmation|approbation|relecture|revision|intervention humaine)|"
        r"\b(?:revele|montre|affiche|donne|envoie)[rz]?(?:-moi| moi)?~(?:ton|votre|tes|vos|le) (?:prompt|"
        r"instructions|invite|message systeme)|"
        r"\b(?:approuve|valide)[rz]? (?:cette|ce) (?:reponse|message) automatiquement",
    ),
    # Spanish
    override(
        "es",
        r"ignora\w*|ignore\w*|olvida\w*|olvide\w*|omite|omita|descarta|descarte|no (?:sigas|siga|hagas caso|haga "
        r"caso)(?: a)?|haz caso omiso de|"
        r"haga caso omiso de|desobedece|pasa por alto|pase por alto|salta\w*",
        r"anteriores|previas|previos|de arriba|antes|precedentes|tus|sus|dadas|recibidas|del sistema|iniciales",
        r"instruccion\w*|indicaciones|ordenes|directrices|reglas|prompt",
        noun_first=True,
    ),
    override(
        "es",
        r"ignora\w*|ignore\w*|olvida\w*|olvide\w*|omite|descarta|no (?:sigas|siga)|haz caso omiso de",
        r"todas|todos|tus|sus|las|estas|anteriores|previas|cualquier",
        r"instruccion\w*|indicaciones|directrices|prompt del sistema",
    ),
    rule(
        "role_takeover", "es", "eres, actua, ahora, partir, adelante",
        r"\b(?:(?:a partir de|desde|de) (?:ahora|este momento)(?: en adelante)?),? (?:tu )?(?:eres|seras|actuas como|"
        r"actua como|debes (?:aprobar|aceptar|"
        r"actuar)|aprueba\w*|acepta todo)\b(?: (?:el|la|un|una|mi))?(?: \w+)?|\bahora estas en modo\b|"
        r"\bahora (?:tu )?eres (?:el |la |un |una )?(?:administrador\w*|asistente|sistema|root|modelo|ia|bot|"
        r"desarrollador\w*)\b",
    ),
    rule(
        "new_instructions", "es", "instruccion, instrucciones, ordenes",
        r"\b(?:nuevas?|importantes?) (?:instruccion\w*|ordenes|directrices)(?: del sistema| para (?:el|la) \w+)? ?:|"
        r"\binstruccion\w* (?:del sistema|para (?:el asistente|la ia)) ?:",
    ),
    rule(
        "approval_order", "es", "aprueba, apruebe, autoriza, confirma, prompt, instrucciones, reembols, revision",
        r"\b(?:aprueb[ae]|autori[zc]\w+|confirm[ae]|envi[ae]|reembols[ae]|proces[ae])\b[^.?!]{0,40}? sin (?:ninguna |"
        r"mas |previa |la )*(?:revision|verificacion|"
        r"aprobacion|confirmacion|supervision|intervencion)|\b(?:revela|muestra|dime|envia|dame)(?:me)?~(?:tu|tus|el|"
        r"su) (?:prompt|instrucciones|mensaje del sistema)|"
        r"\baprueba (?:esta respuesta|este mensaje) automaticamente",
    ),
    # Italian
    override(
        "it",
        r"ignora\w*|ignori|dimentica\w*|dimentichi|trascura\w*|scavalca\w*|non (?:seguire|segua|considerare|tenere "
        r"conto)(?: piu)?",
        r"precedent[ei]|di prima|sopra|tue|tuoi|sue|ricevut[ei]|dat[ei]|di sistema|inizial[ei]|anterior[ei]",
        r"istruzion[ei]|indicazion[ei]|direttiv[ae]|ordini|regole|prompt",
        noun_first=True,
    ),
    override(
        "it",
        r"ignora\w*|ignori|dimentica\w*|dimentichi|non seguire",
        r"tutte|tutti|precedenti|tue|tuoi|queste|qualsiasi|ogni",
        r"istruzion[ei]|indicazioni|direttive|prompt di sistema",
    ),
    rule(
        "role_takeover", "it", "sei, d'ora, da ora, da adesso",
        r"\b(?:d'ora in poi|da (?:ora|adesso)(?: in poi)?|adesso|ora),? (?:tu )?(?:sei|agisci|rispondi solo|approva|"
        r"accetta|devi (?:approvare|accettare))\b"
        r"|\b(?:sei|lei e) (?:ora|adesso) (?:in |un |una |l'|il |la |nella )*(?:\w+[ -]){0,2}?(?:modalita|"
        r"amministratore|admin|assistente|sviluppatore|root)\b",
    ),
    rule(
        "new_instructions", "it", "istruzion, direttiv",
        r"\b(?:nuov[ae]|important[ei]) (?:istruzion[ei]|direttiv[ae])(?: di sistema| per l'(?:assistente|ia))? ?:|"
        r"\bistruzion[ei] (?:di sistema|per l'(?:assistente|ia)) ?:",
    ),
    rule(
        "approval_order", "it", "approva, conferma, autorizza, rimborsa, invia, prompt, istruzioni",
        r"\b(?:approva|conferma|autorizza|rimborsa|invia|procedi)\b[^.?!]{0,40}? senza (?:alcuna |nessuna |ulteriore "
        r"|la )*(?:revisione|verifica|approvazione|"
        r"conferma|controllo|intervento umano)|\b(?:rivela|mostra|mostrami|dimmi|invia|inviami|stampa)~(?:tuo|tue|il|"
        r"le tue) (?:prompt|istruzioni|messaggio di sistema)",
    ),
    # Portuguese
    override(
        "pt",
        r"ignor[ae]\w*|esque[cç][ae]\w*|desconsider[ae]|desconsidere|descart[ae]|nao (?:siga|sigas|obedeca|considere)",
        r"anteriores|previas|acima|de antes|suas|tuas|dadas|recebidas|do sistema|iniciais",
        r"instruc\w*|orientac\w*|diretrizes|ordens|regras|prompt|comandos",
        noun_first=True,
    ),
    override(
        "pt",
        r"ignor[ae]\w*|esquec[ae]\w*|desconsider[ae]|nao (?:siga|sigas)",
        r"todas|todos|suas|tuas|anteriores|quaisquer",
        r"instruc\w*|orientac\w*|diretrizes|prompt do sistema",
    ),
    rule(
        "role_takeover", "pt", "a partir de agora, de agora em diante, agora voce",
        r"\b(?:a partir de agora|de agora em diante),? (?:voce )?(?:e|es|sera|deve|aprove|aceite|aja|atua)\b|\bagora "
        r"voce (?:e|esta em) (?:o |um |uma |modo )",
    ),
    rule(
        "approval_order", "pt", "aprov, confirm, autoriz, reembols, instruc",
        r"\b(?:aprov[ae]|confirm[ae]|autoriz[ae]|reembols[ae]|envi[ae])\b[^.?!]{0,40}? sem (?:nenhuma |qualquer |a "
        r")*(?:revisao|verificacao|aprovacao|confirmacao)"
        r"|\b(?:novas?|importantes?) instruc\w* ?:",
    ),
    # Dutch
    override(
        "nl",
        r"negeer|vergeet|omzeil|sla over|volg niet",
        r"alle|eerdere|vorige|voorgaande|bovenstaande|je|jouw|uw|gegeven",
        r"instructies?|opdrachten|aanwijzingen|richtlijnen|prompts?|systeemprompt",
    ),
    rule(
        "role_takeover", "nl", "vanaf nu, je bent nu, u bent nu, nieuwe instructie, systeemprompt, zonder",
        r"\bvanaf nu (?:ben je|bent u|keur|accepteer)\b|\b(?:je bent|u bent) nu (?:in |een |de )*(?:\w+ "
        r"){0,2}?(?:modus|beheerder|admin|assistent)\b|"
        r"\bnieuwe instructies? ?:|\b(?:toon|geef|stuur)~(?:je|jouw|uw|de) systeemprompt|\bkeur\b[^.?!]{0,40}? goed "
        r"zonder (?:controle|beoordeling)",
    ),
    # Polish
    override(
        "pl",
        r"zignoruj\w*|ignoruj\w*|zapomnij\w*|pomin|nie (?:stosuj|przestrzegaj)",
        r"wszystk\w+|poprzedni\w*|wczesniejsz\w*|powyzsz\w*|swoje|twoje|dotychczasow\w*",
        r"instrukcj\w*|polece\w*|wytyczn\w*|prompt\w*",
    ),
    rule(
        "role_takeover", "pl", "od teraz, jestes teraz, nowe instrukcje, bez",
        r"\bod teraz (?:jestes|zatwierdzaj|akceptuj|dzialaj)\b|\bjestes teraz (?:w |trybie )?\w+|\bnowe instrukcje "
        r"?:|\bzatwierdz\w*\b[^.?!]{0,40}? bez (?:weryfikacji|sprawdzania|kontroli)",
    ),
    # Turkish
    rule(
        "override", "tr", "talimat, komut, yonerge, istem",
        r"(?:onceki|yukaridaki|tum|butun|sistem|mevcut|verilen)(?: \w+){0,2} (?:talimat|komut|yonerge|kural|"
        r"istem)\w*(?: \w+){0,2} "
        r"(?:yok say|gormezden gel|unut|dikkate alma|gec|iptal et|goz ardi et)\w*",
    ),
    rule(
        "approval_order", "tr", "onayla, simdi, artik, talimat, istem",
        r"\bincelem\w* (?:yapmadan|olmadan)[^.?!]{0,30}? onayla|\b(?:kontrol etmeden|sormadan)[^.?!]{0,30}? onayla|"
        r"\b(?:artik|bundan sonra|simdi) (?:sen )?"
        r"(?:bir |)\w+ (?:modunda|yoneticisi|asistani)\w*|\byeni (?:sistem )?talimat\w* ?:|\bsistem (?:istemini|"
        r"talimatlarini) (?:goster|yaz|gonder)",
    ),
    # Everything that was said before, in several languages
    rule(
        "override", "de", "gesagt, angewiesen, aufgetragen",
        r"\b(?:ignorier\w*|vergiss|vergessen sie|missachte\w*) alles,? was (?:dir|ihnen|man dir|man ihnen|vorher|"
        r"bisher|zuvor)(?: \w+){0,3}? (?:gesagt|angewiesen|aufgetragen)",
    ),
    rule(
        "approval_order", "de", "ohne",
        r"\b(?:handle|agiere|verfahre|antworte|uberweise|zahle)\b[^.?!]{0,30}? ohne (?:jede |weitere )?(?:ruckfrage|"
        r"prufung|freigabe|kontrolle)",
    ),
    rule("override", "fr", "dit, precede", r"\boublie[rz]? tout ce (?:qu'on|qui|que)(?: \w+)?(?: t'a| vous a| a)? "
        r"?(?:ete )?(?:dit|precede)\w*"),
    rule("override", "es", "dicho, anterior, dijeron", r"\bolvid[ae]\w* todo lo (?:anterior|que te (?:han dicho|"
        r"dijeron)|dicho)"),
    rule("override", "it", "detto, precede", r"\bdimentic\w+ tutto (?:quello|cio) che (?:ti|le)? ?(?:e stato|hanno|"
        r"precede)\w*(?: detto)?"),
    rule("override", "pt", "dito, disseram, antes", r"\besquec\w+ tudo (?:o que|que) (?:foi|te|lhe|"
        r"voce)[^.]{0,20}?(?:dito|disseram)"),
    # Danish, Norwegian, Swedish
    override(
        "da",
        r"glem|ignorer\w*|glom|ignorera|se bort fra|bortse fran|tilsidesæt|folg ikke|folj inte",
        r"alle|alla|tidligere|tidigare|forrige|foregaende|dine|dina|ovenstaende|ovanstaende|samtlige",
        r"instruktion\w*|instruks\w*|anvisning\w*|ordrer|regler du|prompt\w*|kommando\w*",
    ),
    # Finnish, Czech, Romanian, Hungarian, Greek
    rule("override", "fi", "ohje, kasky", r"\b(?:unohda|ohita|jata huomiotta)(?: \w+){0,2}? (?:aiemmat|edelliset|"
        r"aikaisemmat|yllaolevat)(?: \w+)? (?:ohjeet|kaskyt)"),
    rule("override", "cs", "pokyny, instrukce, prikazy", r"\b(?:ignoruj\w*|zapomen\w*)(?: \w+){0,2}? (?:predchozi|"
        r"vsechny|dosavadni)(?: \w+)? (?:pokyny|instrukce|prikazy)"),
    rule("override", "ro", "instructiun, comenzi", r"\b(?:ignora\w*|uita)(?: \w+){0,2}? (?:instructiun\w+|"
        r"comenzi\w*)(?: \w+)? (?:anterioare|precedente|de mai sus)"),
    rule("override", "hu", "utasitas", r"\b(?:hagyd figyelmen kivul|felejtsd el)(?: \w+){0,3}? (?:eddigi|korabbi|"
        r"elozo)(?: \w+)? utasitas\w*"),
    rule("override", "el", "οδηγι, εντολ", r"\b(?:αγνοησε|ξεχασε|παραβλεψε)(?: \w+){0,3}? (?:προηγουμενες|"
        r"παραπανω)(?: \w+)? (?:οδηγιες|εντολες)"),
)  # fmt: skip
