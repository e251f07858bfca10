"""A small grammar of English sentences with their French: the corpus that the translator learns by default.

It knows agreement and word order, and nothing of the world: its cars may sleep. What French asks for and English does
not is all there: gender and number that spread from the noun to article, adjective and verb; adjectives after the
noun, but a few before it; elision (l'oiseau, n'aime, d'arbre); negation around the verb; de instead of un or des after
a negation (pas de voiture) and instead of des before an adjective (de petits chiens).
"""

from dataclasses import dataclass

from ttutor.corpora.lexicon import Adjective, Noun, Verb
from ttutor.corpora.morphology import begins_with_vowel_sound, contract, elide, english_article

DETERMINERS = ("the", "a", "this", "my", "our")
"""Named by their English singular; "a" stands for some (or any) in the plural."""

NEGATIONS = {"not": "pas", "never": "jamais"}


@dataclass(frozen=True)
class NounPhrase:
    """A noun with its determiner and, at will, one adjective that French puts before it and one that it puts after."""

    determiner: str
    noun: Noun
    plural: bool = False
    before: Adjective | None = None
    after: Adjective | None = None

    person = 3

    @property
    def gender(self) -> str:
        """ "m" or "f", the noun's."""
        return self.noun.gender


@dataclass(frozen=True)
class Pronoun:
    """A subject pronoun."""

    english: str
    french: str
    person: int
    plural: bool = False
    gender: str = "m"


PRONOUNS = (
    Pronoun("I", "je", person=1),
    Pronoun("he", "il", person=3),
    Pronoun("she", "elle", person=3, gender="f"),
    Pronoun("we", "nous", person=1, plural=True),
)


@dataclass(frozen=True)
class Sentence:
    """One sentence, before it is put into words; a sentence has a verb, or a quality (the car is red).

    >>> from ttutor.corpora.lexicon import ADJECTIVES, NOUNS, VERBS
    >>> red = next(adjective for adjective in ADJECTIVES if adjective.english == "red")
    >>> car = next(noun for noun in NOUNS if noun.english == "car")
    >>> sleep = next(verb for verb in VERBS if verb.english == "sleep")
    >>> sentence = Sentence(NounPhrase("the", car, plural=True, after=red), verb=sleep, negation="not")
    >>> sentence.english()
    'the red cars do not sleep'
    >>> sentence.french()
    'les voitures rouges ne dorment pas'
    """

    subject: NounPhrase | Pronoun
    verb: Verb | None = None
    quality: Adjective | None = None
    negation: str | None = None
    object: NounPhrase | None = None
    preposition: tuple[str, str] | None = None
    place: NounPhrase | None = None

    def english(self) -> str:
        """The sentence in English."""
        parts = [_english_subject(self.subject), _english_verb(self)]
        if self.object:
            parts.append(_english_noun_phrase(self.object, negated=self.negation is not None))
        if self.place:
            parts += [self.preposition[0], _english_noun_phrase(self.place)]  # type: ignore[index]
        return " ".join(parts)

    def french(self) -> str:
        """The sentence in French."""
        predicate = _french_verb(self)
        if self.object:
            predicate += " " + _french_noun_phrase(self.object, negated=self.negation is not None)
        if self.place:
            predicate += " " + contract(self.preposition[1], _french_noun_phrase(self.place))  # type: ignore[index]
        if isinstance(self.subject, NounPhrase):
            return f"{_french_noun_phrase(self.subject)} {predicate}"
        return elide("je", predicate) if self.subject.french == "je" else f"{self.subject.french} {predicate}"


def _english_subject(subject: NounPhrase | Pronoun) -> str:
    return subject.english if isinstance(subject, Pronoun) else _english_noun_phrase(subject)


def _english_noun_phrase(phrase: NounPhrase, negated: bool = False) -> str:
    words = [word.english for word in (phrase.before, phrase.after) if word]
    words.append(phrase.noun.in_english(phrase.plural))
    if phrase.determiner == "a":
        plural_article = "any" if negated else "some"
        article = plural_article if phrase.plural else english_article(words[0])
    else:
        article = "these" if phrase.determiner == "this" and phrase.plural else phrase.determiner
    return " ".join([article, *words])


def _english_verb(sentence: Sentence) -> str:
    subject = sentence.subject
    third = subject.person == 3 and not subject.plural
    if sentence.quality:
        return " ".join(filter(None, ["is" if third else "are", sentence.negation, sentence.quality.english]))
    if sentence.negation == "not":
        return f"{'does' if third else 'do'} not {sentence.verb.in_english(False)}"  # type: ignore[union-attr]
    form = sentence.verb.in_english(third)  # type: ignore[union-attr]
    return f"never {form}" if sentence.negation == "never" else form


def _french_noun_phrase(phrase: NounPhrase, negated: bool = False) -> str:
    """Determiner, adjective, noun, adjective, all in the gender and number of the noun."""
    noun = phrase.noun.in_french(phrase.plural)
    words = [noun]
    if phrase.before:
        words.insert(0, _french_adjective_before(phrase.before, phrase, noun))
    if phrase.after:
        words.append(phrase.after.in_french(phrase.gender, phrase.plural))
    rest = " ".join(words)
    if phrase.determiner == "a" and (negated or (phrase.plural and phrase.before)):
        return elide("de", rest)
    if phrase.determiner == "the" and not phrase.plural:
        return elide("le" if phrase.gender == "m" else "la", rest)
    return f"{_french_determiner(phrase, begins_with_vowel_sound(words[0]))} {rest}"


def _french_adjective_before(adjective: Adjective, phrase: NounPhrase, noun: str) -> str:
    """Un beau chien, une belle voiture, but un bel oiseau."""
    if adjective.before_vowel and phrase.gender == "m" and not phrase.plural and begins_with_vowel_sound(noun):
        return adjective.before_vowel
    return adjective.in_french(phrase.gender, phrase.plural)


def _french_determiner(phrase: NounPhrase, before_vowel: bool) -> str:
    """Any determiner that keeps its letters: les; un, une, des; ce, cet, cette, ces; mon, ma, mes; notre, nos."""
    plural = {"the": "les", "a": "des", "this": "ces", "my": "mes", "our": "nos"}
    masculine = {"a": "un", "this": "cet" if before_vowel else "ce", "my": "mon", "our": "notre"}
    feminine = {"a": "une", "this": "cette", "my": "mon" if before_vowel else "ma", "our": "notre"}
    if phrase.plural:
        return plural[phrase.determiner]
    return (masculine if phrase.gender == "m" else feminine)[phrase.determiner]


def _french_verb(sentence: Sentence) -> str:
    """The verb in the subject's person and number, or être with an adjective; the negation stands around it."""
    subject = sentence.subject
    if sentence.quality:
        verb = "sont" if subject.plural else "est"
    else:
        verb = sentence.verb.in_french(subject.person, subject.plural)  # type: ignore[union-attr]
    if sentence.negation:
        verb = elide("ne", f"{verb} {NEGATIONS[sentence.negation]}")
    if sentence.quality:
        verb += " " + sentence.quality.in_french(subject.gender, subject.plural)
    return verb
