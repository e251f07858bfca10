"""Sentences, against translations written by hand."""

import pytest

from ttutor.corpora.grammar import PRONOUNS, NounPhrase, Sentence
from ttutor.corpora.lexicon import ADJECTIVES, NOUNS, PREPOSITIONS, VERBS

NOUN = {noun.english: noun for noun in NOUNS}
ADJECTIVE = {adjective.english: adjective for adjective in ADJECTIVES}
VERB = {verb.english: verb for verb in VERBS}
PRONOUN = {pronoun.english: pronoun for pronoun in PRONOUNS}
PREPOSITION = {pair[0]: pair for pair in PREPOSITIONS}


def phrase(determiner: str, words: str, plural: bool = False) -> NounPhrase:
    """ "small red car": the noun is last; each adjective finds its own place."""
    *adjectives, noun = words.split()
    chosen = [ADJECTIVE[word] for word in adjectives]
    before = next((one for one in chosen if one.before_noun), None)
    after = next((one for one in chosen if not one.before_noun), None)
    return NounPhrase(determiner, NOUN[noun], plural, before, after)


def test_the_sentence_that_the_book_promises():
    sentence = Sentence(phrase("the", "red car", True), VERB["sleep"], negation="not")
    assert sentence.english() == "the red cars do not sleep"
    assert sentence.french() == "les voitures rouges ne dorment pas"


NOUN_PHRASES = [
    (phrase("the", "dog"), "the dog", "le chien"),
    (phrase("the", "bird"), "the bird", "l'oiseau"),
    (phrase("the", "man"), "the man", "l'homme"),
    (phrase("the", "owl"), "the owl", "le hibou"),
    (phrase("the", "owl", True), "the owls", "les hiboux"),
    (phrase("the", "eye"), "the eye", "l'œil"),
    (phrase("the", "small red car", True), "the small red cars", "les petites voitures rouges"),
    (phrase("a", "dog"), "a dog", "un chien"),
    (phrase("a", "apple"), "an apple", "une pomme"),
    (phrase("a", "hour"), "an hour", "une heure"),
    (phrase("a", "university"), "a university", "une université"),
    (phrase("a", "honest man"), "an honest man", "un homme honnête"),
    (phrase("a", "car", True), "some cars", "des voitures"),
    (phrase("a", "small horse", True), "some small horses", "de petits chevaux"),
    (phrase("a", "beautiful tree"), "a beautiful tree", "un bel arbre"),
    (phrase("the", "old man"), "the old man", "le vieil homme"),
    (phrase("the", "new plane", True), "the new planes", "les nouveaux avions"),
    (phrase("this", "tree"), "this tree", "cet arbre"),
    (phrase("this", "owl"), "this owl", "ce hibou"),
    (phrase("this", "car"), "this car", "cette voiture"),
    (phrase("my", "car"), "my car", "ma voiture"),
    (phrase("my", "school"), "my school", "mon école"),
    (phrase("my", "new school"), "my new school", "ma nouvelle école"),
    (phrase("our", "loyal animal", True), "our loyal animals", "nos animaux loyaux"),
]


@pytest.mark.parametrize(("subject", "english", "french"), NOUN_PHRASES, ids=lambda value: str(value)[:30])
def test_noun_phrases(subject, english, french):
    sentence = Sentence(subject, VERB["fall"])
    verb = ("fall", "tombent") if subject.plural else ("falls", "tombe")
    assert (sentence.english(), sentence.french()) == (f"{english} {verb[0]}", f"{french} {verb[1]}")


SENTENCES = [
    (Sentence(PRONOUN["I"], VERB["listen"]), "I listen", "j'écoute"),
    (Sentence(PRONOUN["I"], VERB["listen"], negation="not"), "I do not listen", "je n'écoute pas"),
    (Sentence(PRONOUN["I"], VERB["sleep"], negation="never"), "I never sleep", "je ne dors jamais"),
    (Sentence(PRONOUN["she"], VERB["leave"]), "she leaves", "elle part"),
    (Sentence(PRONOUN["he"], VERB["cry"]), "he cries", "il pleure"),
    (Sentence(PRONOUN["he"], VERB["arrive"], negation="not"), "he does not arrive", "il n'arrive pas"),
    (Sentence(PRONOUN["we"], VERB["swim"]), "we swim", "nous nageons"),
    (Sentence(PRONOUN["she"], quality=ADJECTIVE["proud"]), "she is proud", "elle est fière"),
    (
        Sentence(PRONOUN["we"], VERB["eat"], object=phrase("a", "apple", True)),
        "we eat some apples",
        "nous mangeons des pommes",
    ),
    (
        Sentence(phrase("the", "child"), VERB["see"], object=phrase("a", "car"), negation="not"),
        "the child does not see a car",
        "l'enfant ne voit pas de voiture",
    ),
    (
        Sentence(phrase("the", "dog"), VERB["see"], object=phrase("a", "small bird"), negation="not"),
        "the dog does not see a small bird",
        "le chien ne voit pas de petit oiseau",
    ),
    (
        Sentence(phrase("the", "dog"), VERB["see"], object=phrase("the", "eye", True), negation="not"),
        "the dog does not see the eyes",
        "le chien ne voit pas les yeux",
    ),
    (
        Sentence(phrase("this", "idea", True), quality=ADJECTIVE["strange"], negation="not"),
        "these ideas are not strange",
        "ces idées ne sont pas étranges",
    ),
    (
        Sentence(phrase("the", "car"), quality=ADJECTIVE["heavy"], negation="never"),
        "the car is never heavy",
        "la voiture n'est jamais lourde",
    ),
    (
        Sentence(phrase("the", "cat"), VERB["sleep"], preposition=PREPOSITION["near"], place=phrase("the", "garden")),
        "the cat sleeps near the garden",
        "le chat dort près du jardin",
    ),
    (
        Sentence(phrase("a", "cat"), VERB["sleep"], preposition=PREPOSITION["near"], place=phrase("a", "tree", True)),
        "a cat sleeps near some trees",
        "un chat dort près d'arbres",
    ),
    (
        Sentence(phrase("the", "owl"), VERB["sing"], preposition=PREPOSITION["in"], place=phrase("my", "old tree")),
        "the owl sings in my old tree",
        "le hibou chante dans mon vieil arbre",
    ),
]


@pytest.mark.parametrize(("sentence", "english", "french"), SENTENCES, ids=[case[1] for case in SENTENCES])
def test_sentences(sentence, english, french):
    assert (sentence.english(), sentence.french()) == (english, french)


def test_every_word_of_the_lexicon_is_listed_once_in_each_language():
    for words in (NOUNS, ADJECTIVES, VERBS):
        assert len({word.english for word in words}) == len({word.french for word in words}) == len(words)
