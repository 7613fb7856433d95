"""Standing rules said in passing, in many languages; and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.language.sentences import READ, Rule, is_negative, standing_rules

INSTRUCTIONS = """
From now on, write dates as day, month, year.
Never send an invoice without the purchase order number.
Always put the unit behind the number.
Please don't use bullet points in letters.
No abbreviations in anything the parents read, ever.
Every function gets a docstring and a test.
Whenever you quote a price, please add the delivery time.
Stop adding emojis to my mails.
The word "cheap" is banned, say "affordable".
I prefer short answers without headings.
Two rules for the newsletter: no clickbait, one picture at most.
Recipes in grams only, please, no cups.
Ab sofort bitte alle Beträge mit Mehrwertsteuer angeben.
Niemals Patientennamen in die Betreffzeile schreiben.
Rechnungen immer als PDF, nie als Word-Datei.
Bitte keine Anglizismen in den Briefen.
Kunden werden grundsätzlich gesiezt.
À partir de maintenant, réponds-moi en français.
Ne mets jamais de prix dans l'objet du mail.
Pas d'anglicismes, s'il te plaît, et toujours les prix TTC.
Je veux que tous les devis soient en deux colonnes.
A partir de ahora contéstame en español.
Nunca pongas el precio sin IVA.
Las fotos siempre en horizontal, por favor.
Nada de diminutivos en las cartas a los padres.
D'ora in poi scrivi i prezzi con due decimali.
Non usare mai la parola "sconto".
Ai clienti diamo sempre del lei.
Niente punti esclamativi nelle mail, per favore.
A partir de agora responde sempre em português.
Nunca escrevas o nome completo do doente.
Por favor, nada de estrangeirismos nos relatórios.
Vanaf nu graag alles in het Nederlands.
Gebruik nooit afkortingen in de brieven aan ouders.
Prijzen altijd inclusief btw vermelden.
С этого момента отвечай только по-русски.
Никогда не используй эмодзи в письмах клиентам.
Пожалуйста, без англицизмов.
以后都用中文回答我。
不要再用表情符号了。
金额一律保留两位小数。
今後は必ず税込みで書いてください。
顧客へのメールでは絵文字を使わないでください。
앞으로는 존댓말로 답해 주세요.
날짜는 항상 숫자로 써 주세요.
Od teraz pisz do mnie po polsku.
Nigdy nie używaj skrótów w listach do klientów.
Från och med nu skriver du alltid på svenska.
Använd aldrig förkortningar i breven.
Fra nu af skal alle priser være med moms.
Bruk aldri engelske ord i brevene.
Bundan sonra bana hep Türkçe cevap ver.
Asla müşteri adını konu satırına yazma.
"""

CONSTRAINTS = """
I'm allergic to shellfish.
I can't lift anything heavy, because of my back.
I don't eat pork.
Olga never on Wednesdays, she has choir.
No peanuts for Emil, please.
My limit is two hours a day.
Ich bin gegen Nüsse allergisch.
Ich esse kein Fleisch.
Freitags nie, da bin ich beim Chor.
Je suis allergique aux arachides.
Je ne mange pas de viande.
Soy alérgica a la penicilina.
No como carne ni pescado.
Sono allergico ai crostacei.
Non posso mangiare glutine.
Sou alérgica a amendoim.
Não como carne.
Ik ben allergisch voor noten.
Ik eet geen vlees.
У меня аллергия на орехи.
Я не ем мяса.
我对花生过敏。
我不吃猪肉。
エビアレルギーがあります。
저는 땅콩 알레르기가 있어요.
Mam alergię na orzechy.
Jag är allergisk mot nötter.
"""

NOTHING = """
I have never been to Rome.
She always laughs at my jokes.
I never said that.
No problem, it never works the first time anyway.
No, thanks.
Don't commit that yet.
Do it.
Do you always use tabs?
My neighbour said "never trust a builder" and went home.
We always went to the lake when I was small.
There is no bread left, can you order some?
The old printer never worked with this laptop.
Please don't worry about it.
I always wanted to learn the piano.
No idea what he meant by that.
That must be hard for her.
Never mind, I found it.
I can't believe how fast that was.
I'd like to book a table for two on Friday.
From now on I will get up earlier, I told my sister.
It was always raining, and nobody ever came.
I can't wait to see the result!
Das ist immer noch kaputt.
Ich war noch nie in Rom.
Er kommt immer zu spät.
Kein Problem, mach dir keine Sorgen.
Ich habe das nie gesagt.
Hast du das immer so gemacht?
Je ne suis jamais allé à Rome.
Elle rit toujours.
Pas de problème, merci !
Il n'est toujours pas arrivé.
Nunca he estado en Roma.
No sé qué hacer.
Siempre llega tarde.
No pasa nada, gracias.
Non sono mai stato a Roma.
Ride sempre quando lo vede.
Non lo so.
Nunca estive em Roma.
Não faz mal, obrigado.
Ela está sempre atrasada.
Ik ben nog nooit in Rome geweest.
Geen probleem, dank je.
Hij komt altijd te laat.
Я никогда не был в Риме.
Она всегда смеётся.
Без проблем, спасибо.
我从来没有去过罗马。
她总是笑。
不要紧，谢谢。
ローマに行ったことがありません。
彼女はいつも笑っています。
한 번도 로마에 가 본 적이 없어요.
그녀는 항상 웃어요.
Nigdy nie byłem w Rzymie.
Jag har aldrig varit i Rom.
Det virker aldrig.
Hiç Roma'ya gitmedim.
"""

IN_PASSING = """
bei Angeboten immer netto und brutto, die Leute rechnen sonst selber
Die Kollegin heißt Frau Özdemir, mit Ö, bitte nie Oezdemir schreiben
in Mails an die Schule kein Du, das mögen die nicht
keine Ausrufezeichen, ich bin keine Zahnpasta
Und vor neun rufe ich niemanden an, das gilt auch für Lieferanten
Termine nur dienstags und donnerstags
Meine Tochter verträgt keine Milch
Rezepte bitte immer für vier Personen
Den Hund nie allein lassen, der frisst die Schuhe
Wörter wie "günstig" kommen mir nicht in den Text
ich darf nicht schwer heben nach der OP
jamais de « cher client », ça fait banque
pour les devis, toujours deux décimales et le délai en semaines
on tutoie les fournisseurs, on vouvoie les clients
pas de livraison le lundi, on est fermés
Ma fille ne mange pas de gluten, elle est cœliaque
les titres en français, s'il te plaît, jamais d'anglais dans le menu
et surtout, ne parle jamais du prix avant la visite
chaque mail finit par "Bien à vous, Claire"
je ne travaille pas le mercredi
les photos sans visages, c'est une règle de l'école
nelle mail ai genitori niente emoji e niente abbreviazioni
i prezzi sempre con l'IVA, altrimenti si arrabbiano
mai proporre appuntamenti di venerdì, chiudiamo alle due
Non mangio latticini, mi fanno male
la parola "economico" è vietata, si dice "conveniente"
firma sempre "Un caro saluto, Giulia"
solo farina senza glutine, mia moglie è celiaca
não marque nada às quartas, é o dia da fisioterapia
nos orçamentos, sempre o prazo de entrega, nunca só o preço
nada de "prezado", aqui escrevemos "caro"
o meu filho é alérgico a ovo
Todas as faturas levam o número do projeto
geen telefoontjes voor tien uur
de naam van de klant nooit in de onderwerpregel
alle bedragen in euro, met komma
bij ons altijd u tegen klanten, nooit je
Mijn man eet geen varkensvlees
op woensdag kan ik nooit, dan heb ik de kinderen
commit messages in the imperative, no more than 50 characters, and never mention the customer
we don't deploy on fridays
don't ever touch the generated folder
tests go next to the code, never in a separate tree
no phone calls before ten, my shift ends at six
my mother doesn't eat dairy, so keep that in mind for menus
prices without decimals please
all times in 24h format
the pharmacy must never see the patient's address
Sundays are sacred, nothing on Sundays
"""

IN_PASSING_NOTHING = """
Das hab ich nie verstanden
Mein Bruder ruft immer zu spät an
Nie wieder fahre ich mit der Bahn!
keine Ahnung, frag Klaus
Die Heizung geht nie richtig aus
Immer dieser Regen
kein Wunder bei dem Wetter
Ich hab keine Milch mehr
jamais vu un truc pareil
toujours rien de la banque
pas encore, demain
il n'y a plus de pain
mai vista una cosa così
niente di nuovo dalla banca
non ho tempo oggi
sempre la stessa storia con Marco
nunca vi nada assim
sempre a mesma coisa com ele
não tenho tempo hoje
nooit gedacht dat het zou lukken
altijd hetzelfde met die man
geen tijd vandaag
never seen anything like it
always the same story with him
no news from the bank
no, not that one
don't send it today
nothing to report
no train today, strike
I never got an answer from them
must be the battery
I don't have any food allergies or intolerances
only two left
put it in the fridge
please send the invoice to Karl
"""


def lines(table: str) -> list[str]:
    return [line for line in table.split("\n") if line]


@pytest.mark.parametrize("text", lines(INSTRUCTIONS))
def test_a_standing_instruction_is_recognised(text: str) -> None:
    assert {rule.kind for rule in standing_rules(text)} == {"instruction"}


@pytest.mark.parametrize("text", lines(CONSTRAINTS))
def test_a_lasting_constraint_is_recognised(text: str) -> None:
    assert {rule.kind for rule in standing_rules(text)} == {"constraint"}


@pytest.mark.parametrize("text", lines(IN_PASSING))
def test_a_rule_in_careless_writing_is_recognised(text: str) -> None:
    assert standing_rules(text)


@pytest.mark.parametrize("text", lines(NOTHING + IN_PASSING_NOTHING))
def test_stories_questions_and_orders_of_the_moment_are_no_rules(text: str) -> None:
    assert standing_rules(text) == []


def test_each_sentence_that_states_a_rule_is_a_span_of_the_turn() -> None:
    text = "Morning! Never rename a released file. I was late today. No vendor names in tests, ever. What is next?"
    found = standing_rules(text)
    assert [text[rule.start : rule.end] for rule in found] == [
        "Never rename a released file.",
        "No vendor names in tests, ever.",
    ]
    assert all(0 < rule.strength <= 1 for rule in found)


def test_clear_wording_is_stronger_than_a_polite_wish() -> None:
    strong, weak = standing_rules("No tables, ever.")[0], standing_rules("No tables please.")[0]
    assert strong.strength > weak.strength


def test_plain_statements_under_a_heading_are_rules_until_the_paragraph_ends() -> None:
    text = "Rules: dates are ISO. Table names are plural. Colours come from the theme.\n\nThe weather is nice here."
    assert [text[rule.start : rule.end] for rule in standing_rules(text)] == [
        "Rules: dates are ISO.",
        "Table names are plural.",
        "Colours come from the theme.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        'She told me "always use tabs" yesterday.',
        "```\n# never edit this file\n```\nwhat does this header mean?",
        "> Never send invoices on Friday.\nthat was his mail",
        "The linter says `never use var` for line 3.",
    ],
)
def test_quotations_and_code_state_no_rule(text: str) -> None:
    assert standing_rules(text) == []


def test_only_clear_wording_counts_in_a_long_text() -> None:
    filler = "The committee met in the afternoon and went through the list of members. " * 20
    assert standing_rules("I prefer short answers.")
    assert standing_rules(f"{filler}I prefer short answers.") == []
    assert len(standing_rules(f"{filler}Never send drafts to the printer.")) == 1


def test_what_follows_the_part_that_is_read_is_left_alone() -> None:
    assert standing_rules("x " * READ + "never send drafts to the printer") == []


def test_a_capital_letter_that_becomes_two_small_ones_moves_no_span() -> None:
    text = "İİİ İstanbul. Never send drafts to the printer."
    assert [text[rule.start : rule.end] for rule in standing_rules(text)] == ["Never send drafts to the printer."]


WORDS = 'never no always please ever nie immer kein jamais toujours nunca siempre mai sempre nooit 以后 不要 必ず 항상 , . ? : \n " ` use İ rules'


@given(st.text(max_size=300) | st.lists(st.sampled_from(WORDS.split(" ")), max_size=60).map(" ".join))
def test_any_text_has_rules_in_order_inside_it(text: str) -> None:
    end = 0
    for rule in standing_rules(text):
        assert isinstance(rule, Rule)
        assert end <= rule.start < rule.end <= len(text)
        assert text[rule.start : rule.end].strip() == text[rule.start : rule.end]
        assert 0 < rule.strength <= 1
        end = rule.end


@pytest.mark.parametrize(
    "text",
    [
        "My boss says never use Python for scripts.",
        "Mein Chef sagt, man soll nie vor zehn anrufen.",
        "Mon chef dit qu'il ne faut jamais répondre le week-end.",
        "The manual claims you should always unplug it first.",
        "He told me to never share the calendar with clients.",
        "If I were rich I would always fly first class.",
        "Wenn ich reich wäre, würde ich immer erster Klasse fliegen.",
        "I don't want you to always answer in bullet points.",
        "Du musst nicht immer auf Deutsch antworten.",
        "我同事总是在周五部署。",
    ],
)
def test_what_others_say_or_what_would_be_is_no_rule(text: str) -> None:
    assert standing_rules(text) == []


@pytest.mark.parametrize(
    ("text", "negative"),
    [
        ("A few weren't able to handle it.", True),
        ("They couldn't come.", True),
        ("不过我对中国菜也很感兴趣。", False),
        ("我特别喜欢别人的画。", False),
        ("我不喜欢。", True),
        ("我不同意。", True),
        ("我不得不去。", False),
        ("别用表格。", True),
    ],
)
def test_what_denies_is_told_from_words_that_look_like_it(text: str, negative: bool) -> None:
    assert is_negative(text) is negative
