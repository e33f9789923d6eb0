"""The words by which `rules` tells what a mail is about: lower case, without accents, `*` at an end for any ending.

A phrase in a script without blanks is looked up as it stands.
"""

CATEGORIES: dict[str, str] = {
    "billing": "invoice* billing bill bills payment* paid charge* charged refund* receipt* vat tax* price* "
    "credit_card direct_debit "
    "overcharged double_charged fee fees subscription_cost top_up transfer balance "
    "rechnung* zahlung* bezahl* abgebucht abbuchung* lastschrift gutschrift mahnung* erstattung* mwst steuer* "
    "uberweis* doppelt_berechnet "
    "facture* paiement* paye preleve* prelevement* remboursement* rembourse* avoir tva montant "
    "factura* pago* cobro* cobrado reembolso* recibo* iva importe "
    "fattura* pagamento* pagato addebit* rimbors* ricevuta scontrino importo "
    "fatura* pagamento* cobranca* reembolso boleto "
    "factuur rekening betaling betaald terugbetaling "
    "faktura* platnosc* zwrot* oplat* fatura odeme* iade* "
    "счет* счёт* оплат* платеж* возврат* списал* فاتورة الفاتورة دفع استرداد 請求 請求書 支払 返金 領収 料金 发票 付款 退款 账单 扣款 收费 帳單 "
    "청구 결제 환불",
    "sales": "quote quotation offer_for buy_from purchase pricing demo upgrade_to licence* license* bulk_order "
    "reseller wholesale interested_in "
    "angebot* kaufen preisliste lizenz* bestellen_mochten testversion "
    "devis acheter achat tarif* licence_supplementaire presupuesto* comprar cotizacion tarifa* preventivo acquist* "
    "listino orcamento offerte kopen "
    "wycena teklif предложение купить стоимость عرض_سعر شراء 見積 購入 導入 ライセンス 报价 购买 采购 價格 견적 구매",
    "feature_request": "feature_request feature_suggestion suggestion suggest would_be_great it_would_be_nice "
    "wish_list please_add could_you_add roadmap "
    "missing_feature dark_mode "
    "funktionswunsch ware_schon wunschenswert verbesserungsvorschlag vorschlag fehlt_mir_die "
    "suggestion_d'amelioration serait_bien fonctionnalite ajouter_une nueva_funcion sugerencia seria_util "
    "funzionalita suggerimento sarebbe_utile "
    "機能追加 要望 改善提案 功能建议 希望增加 建议增加 предлож* добавьте",
    "complaint": "complaint complain unacceptable disappointed disappointing terrible awful outrageous disgrace* "
    "worst furious angry lawyer rude "
    "third_time fed_up never_again legal_action ombudsman scandal* ridiculous ashamed disgusted "
    "beschwerde* unverschamt* inakzeptabel enttauscht* verargert unmoglich frechheit anwalt unhoflich* "
    "zum_dritten_mal katastroph* skandal* wutend mangelhaft "
    "reclamation* plainte inacceptable inadmissible decu decue scandaleux honteux avocat furieux impoli "
    "queja* reclamacion* inaceptable decepcionad* indignad* vergonzos* abogado pesimo* harto "
    "reclamo* inaccettabile delus* vergognos* avvocato scandalos* pessim* arrabbiat* maleducat* "
    "reclamacao inaceitavel decepcionad* klacht* onacceptabel teleurgesteld reklamacja skandal sikayet kabul_edilemez "
    "жалоб* безобраз* неприемлем* возмущ* ужасн* شكوى غير_مقبول 苦情 クレーム 不満 ひどい 最悪 許せ 投诉 投訴 非常失望 太差 不能接受 불만 실망",
    "support": "help error* bug bugs crash* broken not_working doesn't_work does_not_work can't cannot login log_in "
    "password reset install* "
    "order delivery deliver* parcel package shipping shipment tracking arrive* account app website update* card "
    "activate* where_is opening_hours open "
    "fehler* absturz* sturzt kaputt funktioniert_nicht geht_nicht anmeld* einlogg* passwort bestellung* lieferung* "
    "paket sendung* versand angekommen konto offnungszeiten hilfe storno* stornier* kundig* "
    "erreur* panne bogue plante marche_pas fonctionne_pas connexion mot_de_passe commande* livraison* colis compte "
    "aide horaires annuler "
    "error* fallo* no_funciona contrasena pedido* entrega* paquete envio cuenta ayuda cancelar horario "
    "errore* guasto non_funziona accesso ordine* consegna* pacco spedizion* conto aiuto annullare orari "
    "erro* nao_funciona senha pedido entrega encomenda conta ajuda foutmelding werkt_niet wachtwoord bestelling "
    "levering pakket "
    "blad nie_dziala haslo zamowienie dostawa hata calismiyor sifre siparis kargo "
    "ошибк* не_работает парол* заказ* доставк* посылк* помогите خطأ لا_يعمل كلمة_المرور طلب الطلب توصيل 注文 配送 届か エラー "
    "ログイン 不具合 パスワード 故障 使い方 "
    "订单 訂單 快递 物流 错误 登录 密码 无法 没有收到 帮助 주문 배송 오류 로그인",
    "internal": "team_meeting all_hands internal_memo payroll standup intranet teambesprechung betriebsrat "
    "reunion_d'equipe",
    "spam": "seo_services first_page_of_google backlinks guest_post cheap_pills casino lottery crypto_profits",
}

INTENTS: dict[str, str] = {
    "complaint": CATEGORIES["complaint"],
    "escalation": "escalate escalation manager supervisor lawyer legal_action last_warning ombudsman eskal* "
    "vorgesetzt* geschaftsfuhr* anwalt frist_setz* "
    "responsable superieur avocat mise_en_demeure superior abogado denuncia responsabile avvocato diffida юрист* "
    "прокуратур* 責任者 上司 法的 经理 律师 主管",
    "acknowledgment": "thank_you thanks many_thanks works_now solved resolved got_it vielen_dank danke hat_geklappt "
    "erledigt funktioniert_jetzt merci_beaucoup "
    "c'est_regle muchas_gracias resuelto grazie_mille risolto obrigado dank_u bedankt tak спасибо شكرا ありがとうございま "
    "解決しました 谢谢 解决了 감사합니다",
    "information": "for_your_information fyi please_note we_inform attached_you_will_find zur_information "
    "zur_kenntnis anbei pour_information ci-joint para_su_informacion "
    "adjunto per_conoscenza in_allegato для_сведения للعلم ご連絡いたします お知らせ 通知您 请知悉",
    "request": "please could_you can_you would_you send_me i_need i_want i_would_like cancel change update refund_me "
    "bitte konnten_sie konnen_sie ich_brauche ich_mochte senden_sie schicken "
    "stornieren merci_de pourriez-vous pouvez-vous j'ai_besoin je_voudrais envoyez por_favor podria podrian necesito "
    "quiero envien per_favore potreste potete vorrei ho_bisogno inviate "
    "por_gentileza poderiam preciso graag kunt_u kunnen_jullie prosze_o lutfen istiyorum пожалуйста прошу нужно "
    "من_فضلك ارجو احتاج お願い ください いただけます 请 麻烦 需要 부탁 주세요",
    "question": "? ？ ؟ when where what why how which who wann wo was warum wie welche quand ou pourquoi comment quel "
    "cuando donde por_que como cual "
    "quando dove perche come quale onde porque wanneer waar waarom hoe kiedy gdzie когда где почему как сколько متى "
    "اين لماذا كيف いつ どこ なぜ でしょうか ますか 什么时候 哪里 为什么 吗 怎么 언제 어디",
}

URGENT = (
    "urgent urgently immediately asap as_soon_as_possible emergency right_now today_only outage down_since "
    "production_down critical deadline_today life_threatening "
    "dringend* umgehend eilig notfall* unverzuglich schnellstmoglich ausfall steht_still noch_heute "
    "urgence immediatement au_plus_vite des_que_possible en_panne urgente urgencia inmediatamente cuanto_antes "
    "emergencia "
    "immediatamente subito emergenza al_piu_presto imediatamente dringende spoed onmiddellijk pilne natychmiast acil "
    "hemen "
    "срочно немедленно авари* عاجل فورا طارئ 至急 緊急 大至急 今すぐ 紧急 緊急 马上 立即 尽快 긴급 급합니다"
)
LOW = (
    "no_rush no_hurry whenever_you_have_time not_urgent just_curious keine_eile nicht_dringend bei_gelegenheit "
    "rien_d'urgent pas_urgent sin_prisa no_es_urgente "
    "senza_fretta non_urgente не_срочно 急ぎません 急ぎではありません 不急"
)
NEGATIVE = (
    CATEGORIES["complaint"]
    + " bad poor annoying annoyed frustrated frustrating unhappy problem* wrong still_no still_not again late broken "
    "schlecht arger* immer_noch leider falsch verspatet "
    "mauvais probleme* toujours_pas retard mal problema* todavia_no tarde sigue_sin cattiv* ancora_non ritardo ruim "
    "atraso slecht плохо проблем* до_сих_пор سيئ مشكلة 困って 残念 遅い 糟糕 问题 还没"
)
POSITIVE = (
    "great excellent love happy perfect wonderful helpful glad pleased super toll prima begeistert zufrieden freue "
    "parfait ravi content excelente perfecto "
    "encantad* ottimo perfetto felice otimo geweldig swietnie отлично ممتاز 素晴らし 助かり 很好 满意"
)
THANKS = "thank thanks danke merci gracias grazie obrigado obrigada bedankt dziekuje tesekkur спасибо شكرا ありがとう 谢谢 감사"
"""Positive only where a mail says little else: most people close with one of these."""
CONNECTORS = (
    r"also|additionally|furthermore|besides|secondly|second|one more thing|another (?:question|thing)|and another|"
    r"separately|by the way|p\.?s\.?|"
    r"ausserdem|zudem|zusatzlich|des weiteren|zweitens|noch eine frage|ubrigens|par ailleurs|de plus|en outre|autre "
    r"question|deuxiemement|"
    r"ademas|por otra parte|otra pregunta|en segundo lugar|inoltre|un'altra (?:cosa|domanda)|in secondo luogo|alem "
    r"disso|bovendien|daarnaast|"
    r"кроме того|также|еще один|また|それから|もう一つ|さらに|另外|此外|还有|再有|\d\s*[.)]"
)
