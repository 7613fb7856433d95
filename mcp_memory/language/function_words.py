"""Words that ask but do not tell: articles, pronouns, auxiliaries, prepositions, conjunctions, question words.

Closed classes of many languages, by which a text's language is known too. They are rare enough in what people
say ("when", "which") for BM25 to take them for telling, and stand in every question. Only queries leave them out,
and only those of the language that the query is in: German "die" is an article, English "die" is not. Documents
keep every word, so a query of nothing else still finds its words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

__all__ = [
    "function_words",
    "function_words_of",
    "languages_of",
    "without_han_function_words",
]

_WORDS = {
    "en": """a about after again all also am an and any anything are as ask at be been before being between both but by
        can could did do does doing done each else ever every everything for from had has have having he her here hers
        him his how i if in into is it its just let me mention mentioned might mine more most much must my no nor not
        of on one or other our ours out over please said say says shall she should so some something such tell than
        that the their theirs them then there these they thing things this those through to told too under until up us
        very was we were what when where which while who whom whose why will with within without would yes yet you
        your yours aren't can't couldn't didn't doesn't don't hadn't hasn't haven't isn't shouldn't wasn't weren't
        won't wouldn't""",
    "de": """aber alle als also am an auch auf aus bei bin bis bist da dann das dass dein deine dem den der des die
        dies diese dieser doch du durch ein eine einem einen einer eines er es für gibt hab habe haben hat hatte ich
        ihm ihn ihr ihre im in ist ja kann kein keine können man mein meine mich mir mit muss nach nicht noch nur ob
        oder sein seine sich sie sind so über um und uns unser unter vom von vor wann war waren warum was weil welche
        welcher welches wem wen wenn wer werden wie wieder wir wird wo wohin woher wurde wurden zu zum zur""",
    "fr": """ai as au aux avait avec avez avoir avons c ce ces cet cette comme comment d dans de des donc dont du elle
        elles en est et était êtes étaient être eu il ils j je l la le les leur leurs lui ma mais me même mes moi mon
        n ne nos notre nous on ont ou où par pas plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s
        sa sans se ses si son sont suis sur ta te tes toi ton tu un une vos votre vous y""",
    "es": """a al algo alguna alguno ante antes como cómo con cuál cuáles cuándo cuanto cuánto de del desde donde dónde
        durante e el él ella ellas ellos en entre era eran eres es esa ese eso esta está están estas este esto estos
        fue fueron ha había han hasta hay he la las le les lo los más me mi mis muy nada ni no nos nosotros nuestra
        nuestro o os para pero por porque qué que quién quien quiénes se sea ser si sí sin sobre son soy su sus
        también te tengo ti tiene tu tus un una uno unos y ya yo""",
    "it": """a ad agli ai al alla alle allo anche c che chi ci come con cosa cui da dai dal dalla dalle dallo degli dei
        del della delle dello di dove e è ed era erano gli ha hai hanno ho i il in io l la le lei li lo loro lui ma mi
        mia mie miei mio ne negli nei nel nella nelle noi non nostra nostro o per perché più quale quali quando quanto
        quella quello questa queste questi questo se sei si sia siamo siete sono sta su sua sue sui sul sulla suo suoi
        te ti tra tu tua tuo un una uno vi voi""",
    "pt": """a ao aos as às até com como da das de dela dele deles do dos e é ela elas ele eles em entre era eram essa
        esse esta está estão este eu foi foram há isso isto já la lhe lo mais mas me mesmo meu meus minha minhas muito
        na não nas nem no nos nós nossa nosso num o onde os ou para pela pelas pelo pelos por porque porquê qual quais
        quando quanto que quem são se sem ser será seu seus só sua suas também te tem tenho ter teu tinha tu tua um
        uma você vocês""",
    "nl": """aan al als bij dan dat de der deze die dit doch doen door een en er ge geen had heb hebben heeft hem het
        hier hij hoe hun iemand iets ik in is ja je jij jou jouw kan kon kunnen maar me meer men met mij mijn moet na
        naar niet niets nog nu of om omdat ons onze ook op over te tegen toch toen tot u uit uw van veel voor waar
        waarom wanneer want waren was wat we welk welke wel werd wezen wie wij wil worden zal ze zei zich zij zijn zo
        zonder zou""",
    "ru": """а без был была были было быть в вам вас ведь во вот все всё вы где да для до его ее её если есть еще ещё
        же за и из или им их к как какая какие какой каков когда кого кому кто ли мне мой моя мы на над нам нас наш не
        него нее неё нет ни них но о об один он она они от по под после при с сам свой себя со так также такой там те
        тебе тебя то того тоже только том ты у уже чего чем что чтобы эта эти это этот я""",
    "sv": """allt alla att av bara blev bli blir de dem den denna det detta dig din dina ditt du där då efter eller en
        ett från för ha hade han hans har henne hennes hon honom hur i inte jag ju kan kunde man med mellan men mig
        min mina mitt mot mycket ni nu när någon något några och om oss på sedan sig sin sina sitt ska skulle som så
        till under upp ut utan vad var vara varför varit vart vem vi vid vilka vilken vilket vår våra vårt är än åt
        över""",
    "da": """af alle alt at blev blive bliver da de dem den denne der deres det dette dig din dine dit du efter eller
        en end er et for fra få ham han hans har havde hende hendes her hos hun hvad hvem hver hvilken hvilket hvis
        hvor hvordan hvorfor hvornår i ikke ind jeg jer jo kan kunne man med meget mellem men mig min mine mit mod ned
        noget nogle nogen nu når og også om op os over på selv sig sin sine sit skal skulle som så til ud under var
        ved vi vil ville vores være været""",
    "no": """alle alt at av ble bli blir da de deg dem den denne der deres det dette din dine ditt du eller en er et
        ett etter for fra få ham han hans har hadde henne hennes her hos hun hva hvem hvilken hvis hvor hvordan
        hvorfor i ikke inn jeg kan kunne man med meg mellom men mer min mine mitt mot mye ned noe noen nå når og også
        om opp oss over på seg selv sin sine sitt skal skulle som så til ut under var ved vi vil ville vår våre være
        vært""",
    "fi": """ei eivät ehkä en enkä et että he heidän hän hänen hänet ja jo jos joka jotka jota kanssa keneltä kenelle
        kenen ketä koska kuin kuinka kuka kun me meidän mihin mikä miksi millainen millä milloin minkä minua minulla
        minulle minun minut minä missä mistä mitä mutta myös ne niiden niin nyt oli olimme olin olit olla olen olemme
        olet ollut on ovat paljon se sekä sen siellä sinun sinä sitten sitä tai tämä tämän vain vai vielä""",
    "hu": """a az azt azok abban arra be bele csak de egy egyik ebben ez ezek ezt én engem fel ha hanem hogy hogyan hol
        honnan hova hány ide igen is itt így ki kit kinek le legyen lesz lett ma majd már meg mely melyik mennyi mert
        mi miatt mikor milyen minden mint mit miért most nagyon nekem neki nem nincs oda ott össze pedig s sem só
        számára szerint te tegnap után vagy vagyok van vannak volt voltak valami valaki vele velem ő ők""",
    "tr": """acaba ama ancak bana bazı belki ben benden beni benim bir biri biz bize bizim bu buna bunda bunu bunun
        bütün çok çünkü da daha de defa değil diye en gibi hangi hem hep her hiç için ile ise kaç kadar kendi ki kim
        kime kimin kimse mi mı mu mü nasıl ne neden nerede nereye nereden niçin niye o olan olarak oldu olduğu on ona
        onda ondan onlar onu onun sana sen seni senin siz sizin şey şu tüm var ve veya ya yani yok zaman""",
    "ro": """a abia acea această aceasta acest acesta ai aici al ale am ar are aș asta astfel atunci au avea ca că care
        cât ce cea cei cel cele cine cu cum cui da dacă dar de deci din doar după ea ei el ele era este eu face fi fie
        fost în îi îl îmi își îți la le lor lui mai mea mei mele meu mi mult nu ne noi nostru o pe pentru prin sa sau
        să se si și sunt suntem tu un una unde unei unui va vă voi vom vor""",
    "pl": """ale bardzo bez bo był była było były być by ci co czego czemu czy dla do dlaczego gdy gdzie go i ich ile
        im ja jak jaka jaki jakie jako je jego jej jest jestem jeszcze już kiedy kim kto ktoś która które który kogo
        ma mam mi mnie mną moja moje mój może mu my na nad nam nas nasz nie nich nim niż o od on ona one oni oraz po
        pod podczas przed przez przy się są skąd ta tak także tam te tego tej ten to tobie tu ty tylko tym u w was we
        wszystko z za ze że żeby""",
    "cs": """aby ale ani asi až bez bude budeme budou by byl byla byli bylo být co což či do ho i já jak jaká jaké jaký
        je jeho jej její jejich jemu jen jenom ještě ji jí jich jim jsem jsi jsme jsou jste k kam každý kde kdo kdy
        když která které který kolik ku má mám máme mě mezi mi mně mnou moje můj my na nad nám náš ne nebo než nic o
        od on ona oni po pod podle pro proč proto před při s se si ta tak také tam ten to tom tu ty u už v ve však vše
        všechno z za ze že""",
    "id": """ada adalah agar aku akan anda apa apakah atau bagaimana bagi bahwa banyak bisa belum berapa dalam dan
        dapat dari dengan di dia hanya harus ia ini itu jika juga kalau kami kamu kapan karena ke kepada kita lagi
        lebih masih mana mengapa mereka nya oleh pada para saat saja sangat saya sebagai sebuah sedang sekarang semua
        seperti serta siapa sudah telah tentang tetapi tidak untuk yang""",
    "ca": """a al als amb això aquell aquella aquest aquesta aquests com d de del dels des el ella ells els em en era
        és està ets ha haver hi han he i jo l la les li lo meu meva molt n na ni no nosaltres o on per perquè però
        qual quan quant que què qui s se sense ser seu seva si sobre som són sóc t també té tinc tot tu un una uns va
        vam van vaig vosaltres""",
    "vi": """anh bao bạn bị bởi các cái cho chưa chúng có còn của cũng đã đang đâu để đến đi được em gì hay hơn khi
        không là lại làm lúc mà mình một này nào nên nếu ngày người nhiều như những nó ở ra rất rồi sao sẽ tại thì
        theo thế tôi trên trong từ và vào vẫn về vì với vậy""",
    "uk": """а або але б без би був була було були бути в вам вас вже ви від він вона вони воно все всі г де для до
        дуже є ж з за зі і із її їй їм їх його й який яка яке які якщо як коли котрий куди ким кого кому ледь лише ми
        мене мені мій моя моє на над нам нас наш не неї нема немає ні о об один під після по при про саме свій свої
        себе скільки та так такий там те ти тобі то тому той тільки у хто це цей ця ці чи чого чому що щоб я""",
    "bg": """а ако аз беше бе би бил била били без в вас ви все във върху го да дали до докато е един една едно за защо
        и из или им има как каква какво какъв като кога кого кое кой която които къде към ли ме ми много мой моя мога
        на над най нас не него нея ни ние никой но някой о обаче от по под при с са само се си след си съм със така
        там тази те ти това тогава този той тук тя че ще я""",
    "sr": """a ali bez bi bila bili bilo bio biti da do dok ga gde gdje i ih ili im iz ja je jedan jer još kad
        kada kakva kakvu
        kako kakav kao ko koga koja koje koji koliko li me meni mi moj moja moje mu na nad naš ne nego nešto ni nije
        nisam nas njega njegov njen njih o od on ona oni ono oko ovaj ovo pa po pod pre prema pri s sa sam samo se
        sebe sam si smo ste sto što su sve svoj ta tada tako taj te ti to toga tu u uz za zašto će ćemo ću али би био
        била били где да до за зашто и из има имам или ја је када како ко које која који колико ли ме ми моја моје мој
        на није од око он она са сам се си смо су та те то у ће што шта""",
    "fa": """از آن آنها است اما او این اینکه با باید بر برای بود به تا چرا چند چه چون چگونه چی خود در را رو شد شما شده
        کجا که کی کدام ما من می نه نیست و هست هم همه هر هستم یا یک""",
    "ar": """أن إلى إن أنا أنت أو أين التي الذي الذين إذا بعد بين تم ثم حتى عن عند على عليه فى في قبل قد كان كانت كم كل
        كما كيف لا لأن لدي لقد لم لماذا لن له لها لي ليس ما ماذا متى مع من منذ منه نحن هذا هذه هل هناك هنا هو
        هي و يا""",
    "he": """אבל או אחרי אל אם אני אנחנו אנו איך איפה איזה אין אל את אתה אתם בין גם היא הוא היה היו היתה הייתה הם הן זה
        זו זאת יש כאשר כבר כי כל כמה כן לא לאן למה לפני לי לנו מאיפה מה מי מתי עד על עם עוד של שלו שלה שלי שלנו
        שלך רק""",
    "el": """αν αλλά από αυτή αυτό αυτός για γιατί δεν εγώ είμαι είναι είσαι είχα είχε έχει έχω ένα ένας έναν ή η θα
        και κάθε κατά με μας μετά μέσα μια μία μου να ο οι όταν ότι όχι που πού πόσο πόσα πότε ποια ποιο ποιος πως πώς
        σας σε στα στη στην στις στο στον στους τα τη την της τι τις το τον του τους των ως""",
    "hi": """और अगर आप आपका इस इसका उस उसका उसकी उसके उन एक ऐसा का कब कहाँ कहां का कि किस किसने किसे की के को कोई कौन
        कौनसा क्या क्यों कितना कितनी कितने कैसा कैसी कैसे था थी थे तक तुम तो था नहीं ने पर बहुत भी मुझे मेरा मेरी मेरे
        मैं मैंने में यह यहाँ ये लिए वह वे वो से हम हमारा हमारी हमारे हमने ही हुआ हुई हूँ है हैं हो""",
}
# Cut out of a question in Chinese or Japanese before it is cut into characters. Only words that ask: leaving out
# pronouns and particles too, or 哪里 and its kin, cost more answers than it gained.
_ASKING = """为什么 為什麼 什么 什麼 怎么样 怎麼樣 怎么 怎麼
    どこ いつ だれ なに 何を 何の なぜ どうして どの どんな どれ いくら ですか ましたか ますか でしたか"""
_ASKED = re.compile("|".join(sorted(_ASKING.split(), key=len, reverse=True)))

# Letters that few languages write, in lower case, and endings of three letters that words of a language often have
# and English words seldom: what tells the language of a text without function words.
_LETTERS = {
    "ß": "de", "ü": "de tr hu", "ä": "de sv fi", "ö": "de sv fi hu tr", "å": "sv da no", "æø": "da no", "őű": "hu",
    "ğşı": "tr", "ñ¿¡": "es", "ãõ": "pt", "łąęśźżń": "pl", "řěůčšž": "cs", "ćđ": "sr", "țșăţ": "ro", "ç": "fr pt tr",
    "èêëàâîïôœ": "fr", "òùì": "it", "·": "ca", "áíóú": "es pt hu cs", "іїєґ": "uk", "ъ": "bg", "јљњђћџ": "sr",
    "پچژگیک": "fa",
}  # fmt: skip
_ENDINGS = {
    "de": "cht eit ung sch zen fte", "fr": "eux ais ait ées oir que", "es": "dad ado ido aba ron mos ías ión ndo",
    "it": "ato zza tta nno amo llo lla zie ità ndo", "pt": "ção ões ado nho nha eir ndo",
    "nl": "jes ijk ouw aar aat eid",
    "sv": "rna ade igt ött", "da": "ede rne ene hed", "no": "ene ede",
    "fi": "ssa ssä stä lla llä lle ltä lta vat vät nut isi aan ään iin öön ksi nen",
    "hu": "ban ben nak nek ból ből ról ről hoz hez höz ság ség ünk ták ték nál nél tak tek",
    "tr": "arı yor rum mız miz nız nın nun dım dim tım duk dük ını", "pl": "ego ych ami owi ość ymi ała ało amy emy",
    "cs": "ého ých ami ové ský ení", "ro": "lui lor tea ște", "id": "kan nya",
}  # fmt: skip
_ENDING_VOTE = 0.5
_ENDING_OF = 4  # letters that a word with an ending has more of

# No word of another language here: a few of them settle that a text is English without counting further.
_ENGLISH = """and are could did does for from had has have her his how if my of she should that the their there
        they this
    to very was were what when where which who will with would you your it's i'm don't I"""
_SURE = frozenset(form for word in _ENGLISH.split() for form in (word, word.capitalize()))
_LOOKED_AT = 40
_ENOUGH = 3
_COUNTED = 200
_SCRIPT_TELLS = "\u0e00"  # from Thai on a script is a language, as far as words go
_MOST = 3


@cache
def _known() -> dict[str, tuple[str, ...]]:
    """Return the languages of each function word."""
    known: dict[str, tuple[str, ...]] = {}
    for language, words in _WORDS.items():
        for word in dict.fromkeys(words.split()):
            known[word] = (*known.get(word, ()), language)
    return known


@cache
def _shapes() -> dict[str, tuple[str, ...]]:
    """Return the languages that each letter, in both cases, and each ending speaks for."""
    shapes = {
        case: tuple(languages.split())
        for letters, languages in _LETTERS.items()
        for letter in letters
        for case in (letter, letter.upper())
    }
    for language, endings in _ENDINGS.items():
        for ending in endings.split():
            shapes[ending] = (*shapes.get(ending, ()), language)
    return shapes


@cache
def function_words(languages: tuple[str, ...]) -> frozenset[str]:
    """Return the function words of these languages, in lower case."""
    return frozenset(word for language in languages for word in _WORDS.get(language, "").split())


def languages_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the languages that most speaks for, three at most; none where nothing does.

    Function words count most, then letters and endings. English has it where it is among the best, so that plain
    English never takes forms of another language.
    """
    if len(_SURE.intersection(words[:_LOOKED_AT])) >= _ENOUGH:
        return ("en",)
    votes: dict[str, float] = {}
    known, shapes = _known(), _shapes()
    lower = [word.lower() for word in words[:_COUNTED] if word < _SCRIPT_TELLS]
    elided = [word.partition("'")[0] for word in lower if word[1:3].find("'") >= 0]  # l'eau, qu'il
    for word in (*lower, *elided):
        for language in known.get(word, ()):
            votes[language] = votes.get(language, 0.0) + 1.0
        if len(word) > _ENDING_OF:
            for language in shapes.get(word[-3:], ()):
                votes[language] = votes.get(language, 0.0) + _ENDING_VOTE
    for letter in shapes.keys() & set().union(*(word for word in lower if not word.isascii())):
        for language in shapes[letter]:
            votes[language] = votes.get(language, 0.0) + 1.0
    most = max(votes.values(), default=0.0)
    if most < 1.0:
        return ()
    best = tuple(language for language in _WORDS if votes.get(language) == most)
    return ("en",) if "en" in best else best[:_MOST]


def function_words_of(words: Sequence[str]) -> frozenset[str]:
    """Return the function words of the language of these words, none where they do not show it."""
    return function_words(languages_of(words))


def without_han_function_words(text: str) -> str:
    """Return a question in Chinese or Japanese with its function words blanked out."""
    return _ASKED.sub(" ", text)
