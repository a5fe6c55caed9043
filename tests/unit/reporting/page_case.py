"""A page of markdown as GitHub would take it, and what hostile text would have to add to it."""

from markdown_it import MarkdownIt

PAGE = MarkdownIt("gfm-like")
BLOCKS = {
    "heading_open", "table_open", "fence", "html_block", "tr_open", "td_open", "bullet_list_open", "ordered_list_open",
    "list_item_open", "code_block", "hr", "blockquote_open",
}  # fmt: skip


def outline(page: str) -> list[tuple[str, str]]:
    """The blocks of a page: what hostile text would have to add to."""
    return [
        (token.type, token.content if token.type == "html_block" else token.info)
        for token in PAGE.parse(page)
        if token.type in BLOCKS
    ]
