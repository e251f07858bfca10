"""`ttutor.grading.submission`: what a class hands in, however it comes and whatever it is."""

from __future__ import annotations

import os
import struct
import sys
import unicodedata
import zipfile

import pytest

from tests.grading.made import THEN, put, zipped
from ttutor.errors import FileError, InputError
from ttutor.grading import submission as choosing
from ttutor.grading.archive import MOST_BYTES
from ttutor.grading.roster import looks_like_canvas, owner_of, read_roster, safe_ids
from ttutor.grading.submission import find_work, read_work

BOTH = ("*.py", "*.ipynb")


def read(folder, **options):
    """Every submission of a class, by id."""
    work = find_work(folder, **options)
    return {one.student: read_work(one, BOTH) for one in work.students}


def contents(submission):
    return {file.name: file.data for file in submission.files}


def test_files_folders_and_zips_of_a_class(tmp_path) -> None:
    put(tmp_path, {"ada.py": "1", "bela.ipynb": "2", "dora/sub/hw.py": "3", "emil.zip": zipped({"x/hw.py": b"4"})})
    assert {name: contents(one) for name, one in read(tmp_path).items()} == {
        "ada": {"ada.py": b"1"},
        "bela": {"bela.ipynb": b"2"},
        "dora": {"sub/hw.py": b"3"},
        "emil": {"emil.zip/x/hw.py": b"4"},
    }


def test_one_file_one_folder_of_one_and_one_zip_of_one(tmp_path) -> None:
    put(tmp_path, {"in/hw.py": "1", "in/more.py": "2", "z.zip": zipped({"hw.py": b"3"})})
    assert list(read(tmp_path / "in" / "hw.py")) == ["hw"]
    assert contents(read(tmp_path / "in", student="Ada L")["Ada-L"]) == {"hw.py": b"1", "more.py": b"2"}
    assert contents(read(tmp_path / "z.zip", student="ada")["ada"]) == {"z.zip/hw.py": b"3"}


def test_moodle_in_folders_in_one_folder_and_zipped(tmp_path) -> None:
    names = ["Ada Lovelace_417_assignsubmission_file/hw.py", "Zoë Ö_9_assignsubmission_file_/hw.py"]
    put(tmp_path / "folders", {**dict.fromkeys(names, "1"), "Bo B_8_assignsubmission_file_a_b.py": "2"})
    ids = {"Ada-Lovelace-417", "Zoe-O-9", "Bo-B-8"}
    assert set(read(tmp_path / "folders")) == ids
    put(tmp_path, {"course.zip": zipped({**dict.fromkeys(names, b"1"), "Bo B_8_assignsubmission_file_a_b.py": b"2"})})
    from_zip = read(tmp_path / "course.zip")
    assert set(from_zip) == ids
    assert contents(from_zip["Bo-B-8"]) == {"a_b.py": b"2"}
    assert [one.shown for one in find_work(tmp_path / "course.zip").students if one.student == "Bo-B-8"] == ["Bo B"]


def test_canvas_with_resubmissions_and_late_marks(tmp_path) -> None:
    put(
        tmp_path,
        {
            "lovelaceada_417_9001_hw1.py": "old",
            "lovelaceada_417_9002_hw1-1.py": "new",
            "babbagecharles_LATE_418_9003_hw1.ipynb": "2",
            "anon_x7Yz1_9004_hw1.py": "3",
        },
    )
    os.utime(tmp_path / "lovelaceada_417_9002_hw1-1.py", (THEN + 1, THEN + 1))
    came = read(tmp_path)
    assert set(came) == {"lovelaceada-417", "babbagecharles-418", "anon-x7Yz1"}
    assert contents(came["lovelaceada-417"]) == {"hw1-1.py": b"new"}
    assert came["lovelaceada-417"].notes == ("hw1-1.py counts, being newer than hw1.py.",)
    assert came["babbagecharles-418"].notes == ("The LMS marked it as late.",)


def test_a_name_that_is_canvas_by_accident_is_left_alone(tmp_path) -> None:
    put(tmp_path, {"hw_1_2_final.py": "1", "ada.py": "2"})
    assert set(read(tmp_path)) == {"hw_1_2_final", "ada"}
    assert not looks_like_canvas([])
    assert owner_of("hw_1_2_final.py").raw == "hw_1_2_final"


def test_files_of_other_names_all_count_the_newest_last(tmp_path) -> None:
    put(tmp_path, {"ada/part-1.py": "1", "ada/part-2.py": "2", "ada/notes.txt": "-"})
    os.utime(tmp_path / "ada" / "part-1.py", (THEN + 5, THEN + 5))
    one = read(tmp_path)["ada"]
    assert [file.name for file in one.files] == ["part-2.py", "part-1.py"]
    assert one.notes == (
        "notes.txt was left out: only *.py, *.ipynb count.",
        "Read in this order, later definitions win: part-2.py, part-1.py.",
    )


@pytest.mark.parametrize(
    "name", ["../evil.py", "a/../../evil.py", "/etc/evil.py", "C:/evil.py", "..\\evil.py", "\\\\host\\evil.py"]
)
def test_a_path_out_of_an_archive_is_left_out(tmp_path, name) -> None:
    put(tmp_path / "in", {"eve.zip": zipped({name: b"evil", "hw.py": b"1"})})
    one = read(tmp_path / "in")["eve"]
    assert contents(one) == {"eve.zip/hw.py": b"1"}
    assert "leads out of the archive" in one.notes[0]
    assert [path.name for path in tmp_path.rglob("*")] == ["in", "eve.zip"]


def test_links_are_never_followed(tmp_path) -> None:
    put(tmp_path, {"secret.py": "seed", "in/eve.zip": zipped({"l.py": b"/etc/passwd"}, links=("l.py",))})
    for name in ("bob", "cat.py"):
        (tmp_path / "in" / name).symlink_to(tmp_path if name == "bob" else tmp_path / "secret.py")
    came = read(tmp_path / "in")
    assert {name: contents(one) for name, one in came.items()} == {"bob": {}, "cat": {}, "eve": {}}
    assert all("it is a link" in one.notes[0] and one.problem for one in came.values())


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes to put into a folder on Windows")
def test_what_is_no_file_is_never_opened(tmp_path) -> None:
    (tmp_path / "eve").mkdir()
    os.mkfifo(tmp_path / "eve" / "hw.py")
    assert read(tmp_path)["eve"].notes == ("hw.py was left out: it is no plain file.",)


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(choosing, "MOST_BYTES", 100_000)
    put(tmp_path, {"eve.zip": zipped({"hw.py": b"0" * 5_000_000}), "ada.py": "1"})
    came = read(tmp_path)
    assert came["eve"].files == ()
    assert "unpacks to 5000000 bytes" in came["eve"].notes[0]
    assert contents(came["ada"]) == {"ada.py": b"1"}


def test_a_size_that_lies_does_not_help(tmp_path) -> None:
    data = bytearray(zipped({"hw.py": b"0" * 3_000_000}))
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<L", 10)
    put(tmp_path, {"eve.zip": bytes(data)})
    one = read(tmp_path)["eve"]
    assert sum(len(file.data) for file in one.files) <= 10


def test_many_bombs_share_one_allowance(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(choosing, "MOST_TOGETHER", 250_000)
    inner = zipped({"hw.py": b"0" * 90_000})
    put(tmp_path, {"eve.zip": zipped({f"{n}.zip": inner for n in range(50)})})
    one = read(tmp_path)["eve"]
    assert 0 < sum(len(file.data) for file in one.files) <= 250_000
    assert any("at most" in note for note in one.notes)


def test_archives_in_archives_end_somewhere(tmp_path) -> None:
    data = b"x = 1"
    for _ in range(5):
        data = zipped({"hw.py": data, "more.zip": data})
    put(tmp_path, {"eve.zip": data})
    assert any("archives are read 2 deep" in note for note in read(tmp_path)["eve"].notes)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK",
        b"PK\x05\x06",
        b"no zip" * 100,
        zipped({"hw.py": b"1"})[:-5],
        b"PK\x05\x06" + b"\xff" * 18,
        b"PK\x06\x07" + b"\0" * 16 + b"PK\x05\x06" + b"\0" * 18,
    ],
    ids=["empty", "two bytes", "cut", "text", "end missing", "huge table", "zip64"],
)
def test_a_damaged_archive_costs_only_itself(tmp_path, data) -> None:
    put(tmp_path, {"eve.zip": data, "ada.py": "1"})
    came = read(tmp_path)
    assert came["eve"].problem is not None
    assert came["eve"].notes[0].startswith("eve.zip ")
    assert came["ada"].problem is None


def test_a_broken_member_costs_only_itself(tmp_path) -> None:
    data = bytearray(zipped({"a.py": os.urandom(2000), "b.py": b"x = 1"}))
    data[200:260] = b"\0" * 60
    put(tmp_path, {"eve.zip": bytes(data)})
    one = read(tmp_path)["eve"]
    assert contents(one) == {"eve.zip/b.py": b"x = 1"}
    assert "is damaged" in one.notes[0]


def test_a_locked_or_oddly_packed_archive_is_named(tmp_path) -> None:
    with zipfile.ZipFile(tmp_path / "eve.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("hw.py", "1")
    data = bytearray(zipped({"hw.py": b"1"}))
    data[6] |= 1
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    put(tmp_path, {"bob.zip": bytes(data)})
    came = read(tmp_path)
    assert "unusual way" in came["eve"].notes[0]
    assert "password" in came["bob"].notes[0]


def test_a_file_of_100_mb_is_not_read(tmp_path) -> None:
    with (tmp_path / "eve.py").open("wb") as file:
        file.truncate(100 << 20)
    put(tmp_path, {"ada.py": "1"})
    came = read(tmp_path)
    assert came["eve"].files == ()
    assert f"at most {MOST_BYTES} are read" in came["eve"].notes[0]
    assert came["eve"].problem is not None


def test_bytes_are_handed_on_as_they_are(tmp_path) -> None:
    put(tmp_path, {"eve.py": b"\xff\xfe\x00 = 1"})
    assert contents(read(tmp_path)["eve"]) == {"eve.py": b"\xff\xfe\x00 = 1"}


def test_an_empty_folder_is_a_student_who_handed_in_nothing(tmp_path) -> None:
    (tmp_path / "eve").mkdir()
    put(tmp_path, {"jo/report.pdf": b"%PDF", ".git/x.py": "1", "bo/__MACOSX/._hw.py": "1"})
    came = read(tmp_path)
    assert (came["eve"].files, came["eve"].problem) == ((), None)
    assert came["jo"].problem is not None
    assert ".git" not in came


@pytest.mark.parametrize(
    "name", ["a;rm -rf ~.py", "$(id).py", "`id`.py", "a|b&c.py", "-rf.py", "=1+1.py", "a\nb.py", "a\x1b[2J.py", "😀.py"]
)
def test_names_with_path_or_shell_characters_become_safe(tmp_path, name) -> None:
    put(tmp_path, {name: "1"})
    ((student, one),) = read(tmp_path).items()
    assert student.replace("-", "").replace(".", "").replace("_", "").isalnum()
    assert student.isascii()
    assert not student.startswith(("-", "."))
    assert find_work(tmp_path).students[0].shown.isprintable()
    assert contents(one).popitem()[1] == b"1"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes file names that are no text")
def test_a_file_name_that_is_no_text_can_be_shown(tmp_path) -> None:
    with open(os.fsencode(tmp_path) + b"/\xff\xfe.py", "wb") as file:
        file.write(b"1")
    ((student, one),) = read(tmp_path).items()
    assert student.startswith("student-")
    assert find_work(tmp_path).students[0].shown.encode()
    assert one.files[0].name.encode()


def test_ids_are_unique_on_every_disk() -> None:
    ids = safe_ids(["Ada", "ada", "a b", "a-b", "CON", "..", "", "x" * 300, "x" * 301, "é", "e"])
    assert len({one.casefold() for one in ids.values()}) == len(ids) == 11
    assert all(0 < len(one) <= 80 for one in ids.values())
    assert ids["CON"] == "x-CON"
    assert safe_ids(["Ada"]) == {"Ada": "Ada"}


def test_a_folder_with_very_many_files_ends_somewhere(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("ttutor.grading.archive.MOST_UNDER_ONE", 10)
    put(tmp_path, {f"eve/{n}.py": str(n) for n in range(30)} | {"fay.py": "1"})
    came = read(tmp_path)
    assert len(came["eve"].files) == 10
    assert any("more than 10 files" in note for note in came["eve"].notes)
    assert contents(came["fay"]) == {"fay.py": b"1"}


def test_notes_do_not_flood(tmp_path) -> None:
    put(tmp_path, {f"eve/{n}.txt": "1" for n in range(100)})
    assert len(read(tmp_path)["eve"].notes) == choosing.MOST_NOTES + 1


def test_a_roster_names_those_who_are_missing(tmp_path) -> None:
    put(tmp_path, {"in/ada.py": "1", "in/stranger.py": "2"})
    put(tmp_path, {"r.csv": "student,name,email,submitted\nada,Ada L,a@x,2026-11-20T23:00:00+01:00\nbo,Bo,,\n"})
    roster = read_roster(tmp_path / "r.csv")
    with pytest.raises(InputError, match=r"\(stranger\) while nothing was found of Bo \(bo\)"):
        find_work(tmp_path / "in", roster)
    (tmp_path / "in" / "stranger.py").rename(tmp_path / "in" / "roster.xlsx")
    work = find_work(tmp_path / "in", roster)
    came = {one.student: read_work(one, BOTH) for one in work.students}
    assert {name: bool(one.files) for name, one in came.items()} == {"ada": True, "bo": False}
    assert (work.students[0].shown, work.students[0].submitted) == ("Ada L", "2026-11-20T22:00:00+00:00")
    assert came["bo"].problem is None
    assert work.notes == ("roster is nobody on the roster and holds no work; it was left out.",)
    put(tmp_path, {"in/bo.py": "1", "in/stranger.py": "2"})
    assert "stranger handed in and is not on the roster." in find_work(tmp_path / "in", roster).notes


STRAYS = ["zukosokka_430_text.html", "roster.xlsx", "o'neil-smith_420_9009_hw1.py", "notes.txt", "hw-1.py"]


@pytest.mark.parametrize("stray", STRAYS)
def test_one_stray_file_changes_nobody_elses_name(tmp_path, stray) -> None:
    put(tmp_path, {f"{name}_{n}_90{n}_hw1.py": "1" for n, name in enumerate(("ada", "bo", "cy"), 417)} | {stray: "2"})
    came = read(tmp_path)
    assert all(contents(came[one]) == {"hw1.py": b"1"} for one in ("ada-417", "bo-418", "cy-419"))
    assert {"zukosokka_430_text.html": "zukosokka-430", STRAYS[2]: "o-neil-smith-420"}.get(stray, "ada-417") in came


def test_of_too_many_files_those_that_were_asked_for_are_read_and_somebody_looks(tmp_path) -> None:
    put(tmp_path, {f"ada/{n}.py": str(n) for n in range(120)} | {"ada/hw1.py": "asked for", "bo/hw1.py": "1"})
    os.utime(tmp_path / "ada" / "hw1.py", (1, 1))
    students = find_work(tmp_path).students
    ada, bo = (read_work(one, ("hw1*.py", "*.py")) for one in students)
    assert len(ada.files) == 100
    assert contents(ada)["hw1.py"] == b"asked for"
    assert "121 files" in ada.problem
    assert bo.problem is None


SPELLINGS = {
    "a file from a Mac": ("Zoë Müller", "NFD", "NFC"),
    "a roster from a Mac": ("Zoë Müller", "NFC", "NFD"),
    "Vietnamese": ("Nguyễn Thị Ngọc", "NFD", "NFC"),
    "Hangul in parts": ("김민준", "NFD", "NFC"),
    "Cyrillic with a breve": ("Андрей Йовчев", "NFD", "NFC"),
    "Arabic with a hamza": ("أحمد", "NFD", "NFC"),
    "Devanagari with a nukta": ("फ़ारूक़", "NFC", "NFD"),
    "wide letters": ("Ｚｏｅ　Ｍ", "NFC", "NFKC"),
}


@pytest.mark.parametrize(("name", "on_disk", "in_roster"), SPELLINGS.values(), ids=SPELLINGS)
@pytest.mark.parametrize("entry", ["{}.py", "{}/hw.py", "{}_417_assignsubmission_file/hw.py"])
def test_however_a_name_is_spelt_its_student_is_found(tmp_path, entry, name, on_disk, in_roster) -> None:
    put(tmp_path, {f"in/{entry.format(unicodedata.normalize(on_disk, name))}": "1"})
    put(tmp_path, {"r.csv": f"student,name\n{unicodedata.normalize(in_roster, name)},A name\n"})
    (one,) = find_work(tmp_path / "in", read_roster(tmp_path / "r.csv")).students
    assert one.shown == "A name"
    assert read_work(one, BOTH).files


def test_a_name_that_only_looks_alike_without_its_marks_is_another(tmp_path) -> None:
    put(tmp_path, {"in/Zoe.py": "1", "r.csv": "student\nZoë\n"})
    with pytest.raises(InputError, match=r"nobody on the roster \(Zoe\) while nothing was found of Zoë"):
        find_work(tmp_path / "in", read_roster(tmp_path / "r.csv"))


def test_two_spellings_of_one_name_are_one_student_with_one_id(tmp_path) -> None:
    names = [unicodedata.normalize(form, "李 Žofia") for form in ("NFC", "NFD")]
    put(tmp_path, {f"both/{names[0]}.py": "1", f"both/{names[1]}/more.py": "2", f"mac/{names[1]}.py": "1"})
    assert len(read(tmp_path / "both")) == 1
    assert list(read(tmp_path / "mac")) == list(read(tmp_path / "both"))


def test_a_pattern_of_files_knows_every_spelling(tmp_path) -> None:
    put(tmp_path, {unicodedata.normalize("NFD", "ada/Lösung.py"): "1"})
    (one,) = find_work(tmp_path).students
    assert read_work(one, ("lösung*.py",)).files


def test_rosters_of_canvas_and_moodle(tmp_path) -> None:
    put(
        tmp_path,
        {
            "c.csv": 'Student,ID,SIS User ID,SIS Login ID,Section\n    Points Possible,,,,\n"L, Ada",417,s1,al,A\n',
            "m.csv": "\ufeffIdentifier,Full name,Email address\nParticipant 417,Ada L,a@x\n",
        },
    )
    for name in ("c", "m"):
        (ada,) = read_roster(tmp_path / f"{name}.csv").students
        assert ada.key == "417"
        assert ada.name in ("L, Ada", "Ada L")
    put(tmp_path, {"in/lovelaceada_417_9001_hw1.py": "1"})
    (one,) = find_work(tmp_path / "in", read_roster(tmp_path / "c.csv")).students
    assert (one.student, one.shown) == ("lovelaceada-417", "L, Ada")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("colour,shade\nred,1\n", "Canvas's ID), but it has 'colour', 'shade'"),
        ("", "a column `student` (or Moodle's Identifier, Canvas's ID), but no row came"),
        ("student\nada\nADA\n", "twice came ada"),
        ("student,submitted\nada,yesterday\n", "submitted of ada must be a time"),
        ("student,submitted\nada,2026-11-20T23:00:00\n", "with its offset"),
    ],
)
def test_a_roster_that_cannot_be_used_is_named(tmp_path, text, said) -> None:
    put(tmp_path, {"r.csv": text})
    with pytest.raises(FileError, match="r.csv") as caught:
        read_roster(tmp_path / "r.csv")
    assert said in str(caught.value)


def test_nothing_to_grade_is_said(tmp_path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        find_work(tmp_path / "none")
    with pytest.raises(InputError, match="holds no submission"):
        find_work(tmp_path)
    put(tmp_path, {"class.zip": b"no zip"})
    with pytest.raises(InputError, match=r"class\.zip is no zip file"):
        find_work(tmp_path / "class.zip")
