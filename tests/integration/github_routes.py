"""What the stand-in for GitHub's API answers at which address."""

import re
from typing import Any

from tests.integration.github_case import (
    LONGEST_QUERY,
    MOST_CHARACTERS,
    MOST_FOUND,
    MOST_OPERATORS,
    Account,
    Answer,
    Comment,
    Issue,
    Seen,
    StandIn,
    invalid,
    paged,
    rate_limited,
    refuse,
    terms,
)

_NOW = "2026-06-01T12:00:00Z"
_REPO = r"/repos/(?P<repository>[^/]+/[^/]+)"


def routed(api: StandIn, seen: Seen, account: Account | None) -> Answer:
    """The answer of the API to one request that came through the gates."""
    moved = re.match(_REPO, seen.path)
    if moved is not None and moved["repository"].lower() in api.moved:
        new = seen.path.replace(moved["repository"], api.moved[moved["repository"].lower()], 1)
        # A renamed repository: GitHub answers 301 to a GET and 307 to the rest, within the API.
        return refuse(301 if seen.verb == "GET" else 307, "Moved Permanently", {"Location": api.url + new})
    for verb, pattern, answer in _ROUTES:
        found = re.fullmatch(pattern, seen.path)
        if found is not None and verb == seen.verb:
            return answer(api, seen, account, found.groupdict())
    return refuse(404, "Not Found")


def _user(api: StandIn, seen: Seen, account: Account | None, _at: dict[str, str]) -> Answer:
    if account is None:
        return refuse(401, "Requires authentication")
    if account.login.endswith("[bot]"):
        return refuse(403, "Resource not accessible by integration")
    return 200, {}, _user_of(account.login)


def _viewer(api: StandIn, seen: Seen, account: Account | None, _at: dict[str, str]) -> Answer:
    """The GraphQL API, as far as one question of it."""
    if account is None or not account.tells_viewer:
        return refuse(404, "Not Found")
    assert "viewer" in seen.body["query"]
    return 200, {}, {"data": {"viewer": {"login": account.login}}}


def _issue(api: StandIn, seen: Seen, account: Account | None, at: dict[str, str]) -> Answer:
    issue = _visible(api, account, at)
    if issue is None:
        return refuse(404, "Not Found")
    if at["repository"] in api.switched_off:
        return refuse(410, "Issues are disabled for this repo")
    return 200, {}, issue_document(api, issue)


def _comments(api: StandIn, seen: Seen, account: Account | None, at: dict[str, str]) -> Answer:
    issue = _visible(api, account, at)
    if issue is None:
        return refuse(404, "Not Found")
    found, headers = paged(api, seen, [one for one in api.comments if one.issue is issue])
    return 200, headers, [_comment_document(api, one) for one in found]


def _comment(api: StandIn, seen: Seen, account: Account | None, at: dict[str, str]) -> Answer:
    found = next((one for one in api.comments if one.id == int(at["id"])), None)
    return (200, {}, _comment_document(api, found)) if found is not None else refuse(404, "Not Found")


def _create(api: StandIn, seen: Seen, account: Account | None, at: dict[str, str]) -> Answer:
    issue = _visible(api, account, at)
    wrong = _may_write(account, issue) or _wrong_body(seen)
    if wrong is not None or issue is None or account is None:
        return wrong or refuse(404, "Not Found")
    made = api.add_comment(issue, login=account.login, body=seen.body["body"])
    return 201, {}, _comment_document(api, made)


def _edit(api: StandIn, seen: Seen, account: Account | None, at: dict[str, str]) -> Answer:
    found = next((one for one in api.comments if one.id == int(at["id"])), None)
    if found is None:
        return refuse(404, "Not Found")
    if account is None or found.login != account.login:
        return refuse(403, "Must have admin rights to Repository.")
    wrong = _may_write(account, found.issue) or _wrong_body(seen)
    if wrong is not None:
        return wrong
    found.body = seen.body["body"]
    return 200, {}, _comment_document(api, found)


def _may_write(account: Account | None, issue: Issue | None) -> Answer | None:
    if account is None:
        return refuse(401, "Requires authentication")
    if issue is None:
        return refuse(404, "Not Found")
    if account.scopes is not None and not {"repo", "public_repo"} & set(account.scopes):
        return refuse(403, "Must have write access.", {"X-Accepted-OAuth-Scopes": "public_repo, repo"})
    if not account.may_write:
        needed = {"X-Accepted-GitHub-Permissions": "issues=write; pull_requests=write"}
        return refuse(403, "Resource not accessible by personal access token", needed)
    if issue.locked:
        return refuse(403, "Unable to create comment because issue is locked.")
    return None


def _wrong_body(seen: Seen) -> Answer | None:
    body = seen.body.get("body") if isinstance(seen.body, dict) else None
    if not isinstance(body, str) or not body.strip():
        return invalid("IssueComment", "body", "missing_field")
    if len(body) > MOST_CHARACTERS:
        return invalid("IssueComment", "body", "custom", f"body is too long (maximum is {MOST_CHARACTERS} characters)")
    return None


def _gists(api: StandIn, seen: Seen, account: Account | None, at: dict[str, str]) -> Answer:
    wrong = _may_gist(account)
    return wrong if wrong is not None else (200, {}, [*reversed(api.gists.values())][:30])


def _read_gist(api: StandIn, seen: Seen, account: Account | None, at: dict[str, str]) -> Answer:
    """A secret gist is one that nobody can guess: whoever knows its id may read it."""
    known = api.gists.get(at["id"])
    return (200, {}, known) if known is not None else refuse(404, "Not Found")


def _gist(api: StandIn, seen: Seen, account: Account | None, at: dict[str, str]) -> Answer:
    wrong = _may_gist(account)
    known = api.gists.get(at.get("id", ""))
    if wrong is not None or (seen.verb == "PATCH" and known is None):
        return wrong or refuse(404, "Not Found")
    files = seen.body.get("files") or {}
    if not files or any(not one["content"] for one in files.values()):
        return invalid("Gist", "files", "missing_field")
    gist_id = at.get("id") or f"{len(api.gists) + 1:032x}"
    api.gists[gist_id] = {
        "id": gist_id,
        "url": f"{api.url}/gists/{gist_id}",
        "html_url": f"https://gist.github.com/octo-reporter/{gist_id}",
        "owner": _user_of(account.login if account is not None else ""),
        "public": seen.body.get("public", (known or {}).get("public", False)),
        "description": seen.body.get("description"),
        "files": {name: {"filename": name, **one} for name, one in files.items()},
    }
    return 200 if known else 201, {}, api.gists[gist_id]


def _may_gist(account: Account | None) -> Answer | None:
    if account is None:
        return refuse(401, "Requires authentication")
    if account.scopes is not None and "gist" not in account.scopes:
        return refuse(404, "Not Found", {"X-Accepted-OAuth-Scopes": "gist"})  # GitHub's answer without the scope
    return None


def _search(api: StandIn, seen: Seen, account: Account | None, at: dict[str, str]) -> Answer:
    api.searches_left -= 1
    if api.searches_left < 0:
        return rate_limited(api)
    query = seen.query.get("q", "")
    words, qualifiers = terms(query)
    if not words or len(query) > LONGEST_QUERY:
        return invalid("Search", "q", "invalid", "The search is longer than 256 characters.")
    if sum(word in ("AND", "OR", "NOT") for word in query.split()) > MOST_OPERATORS:
        return invalid("Search", "q", "invalid", "More than five AND / OR / NOT operators were used.")
    kinds = set(qualifiers.get("is", [])) & {"issue", "pull-request"}
    if not kinds:
        return invalid("Search", "q", "invalid", "Query must include 'is:issue' or 'is:pull-request'")
    where = [name.lower() for name in qualifiers.get("repo", [])]
    known = {one.repository.lower() for one in api.issues if not one.private or account is not None}
    if any(name not in known for name in where):
        return invalid("Search", "q", "invalid", "The listed users and repositories cannot be searched either because"
                       " the resources do not exist or you do not have permission to view them.")  # fmt: skip
    found = [one for one in api.issues if one.repository.lower() in where and _matches(one, words, kinds, qualifiers)]
    if (int(seen.query.get("page", "1")) - 1) * int(seen.query.get("per_page", "30")) >= MOST_FOUND:
        return refuse(422, "Only the first 1000 search results are available")
    page, headers = paged(api, seen, found[:MOST_FOUND])
    items = [issue_document(api, one) | {"score": 1.0} for one in page]
    return 200, headers, {"total_count": len(found), "incomplete_results": False, "items": items}


def _matches(one: Issue, words: list[str], kinds: set[str], qualifiers: dict[str, list[str]]) -> bool:
    text = f"{one.title} {one.body}".lower()
    is_open = one.state == "open" or "open" not in qualifiers.get("is", [])
    return is_open and ("pull-request" if one.is_pull else "issue") in kinds and all(w.lower() in text for w in words)


def _visible(api: StandIn, account: Account | None, at: dict[str, str]) -> Issue | None:
    issue = api.issue(at["repository"], int(at["number"]))
    return None if issue is None or (issue.private and account is None) else issue


def _user_of(login: str) -> dict[str, Any]:
    return {"login": login, "id": 1, "type": "Bot" if login.endswith("[bot]") else "User", "site_admin": False}


def issue_document(api: StandIn, issue: Issue) -> dict[str, Any]:
    """An issue as GitHub gives it; a pull request is one with more."""
    kind = "pull" if issue.is_pull else "issues"
    url = f"{api.url}/repos/{issue.repository}/issues/{issue.number}"
    document = {
        "id": issue.number,
        "url": url,
        "repository_url": f"{api.url}/repos/{issue.repository}",
        "comments_url": f"{url}/comments",
        "html_url": f"https://github.com/{issue.repository}/{kind}/{issue.number}",
        "number": issue.number,
        "title": issue.title,
        "state": "closed" if issue.merged else issue.state,
        "locked": issue.locked,
        "active_lock_reason": None,
        "user": _user_of("somebody"),
        "body": issue.body,
        "comments": sum(one.issue is issue for one in api.comments),
        "created_at": _NOW,
        "updated_at": _NOW,
        "closed_at": None,
    }
    if issue.is_pull:
        document["pull_request"] = {"url": url, "merged_at": _NOW if issue.merged else None}
    return document


def _comment_document(api: StandIn, comment: Comment) -> dict[str, Any]:
    issue = comment.issue
    url = f"{api.url}/repos/{issue.repository}/issues"
    return {
        "id": comment.id,
        "url": f"{url}/comments/{comment.id}",
        "html_url": f"https://github.com/{issue.repository}/pull/{issue.number}#issuecomment-{comment.id}",
        "issue_url": f"{url}/{issue.number}",
        "body": comment.body,
        "user": _user_of(comment.login),
        "created_at": _NOW,
        "updated_at": _NOW,
        "author_association": "NONE",
    }


_ROUTES = (
    ("GET", "/user", _user),
    ("GET", _REPO + r"/issues/(?P<number>\d+)", _issue),
    ("GET", _REPO + r"/issues/(?P<number>\d+)/comments", _comments),
    ("POST", _REPO + r"/issues/(?P<number>\d+)/comments", _create),
    ("GET", _REPO + r"/issues/comments/(?P<id>\d+)", _comment),
    ("PATCH", _REPO + r"/issues/comments/(?P<id>\d+)", _edit),
    ("GET", "/gists", _gists),
    ("POST", "/gists", _gist),
    ("GET", r"/gists/(?P<id>[0-9a-f]+)", _read_gist),
    ("POST", "/graphql", _viewer),
    ("PATCH", r"/gists/(?P<id>[0-9a-f]+)", _gist),
    ("GET", "/search/issues", _search),
)
