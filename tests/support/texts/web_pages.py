"""An episode in Mind2Web's format, made by hand: two pages of a site that sells train tickets, each
with two snippets five levels below the root."""

from typing import Any

PAGES = (
    '<html backend_node_id="1"><body backend_node_id="2"><div><div><div backend_node_id="5">'
    '<div backend_node_id="3"><form backend_node_id="10">\n<label>From</label>'
    '<input backend_node_id="11" name="from"/><label>To</label>'
    '<input backend_node_id="12" name="to"/></form></div>'
    '<div backend_node_id="4"><a backend_node_id="20">Help</a><br>'
    '<a backend_node_id="21">Offers to Rome</a></div></div></div></div></body></html>',
    '<html backend_node_id="1"><body backend_node_id="2"><div><div><div backend_node_id="5">'
    '<div backend_node_id="3"><p>Zurich to Bern, 2 adults</p></div>'
    '<div backend_node_id="4"><button backend_node_id="31"><span backend_node_id="32">Search'
    "</span></button></div></div></div></div></body></html>",
)
_REPRS = ["[textbox] To -> TYPE: Bern", "[button] Search -> CLICK"]


def action(number: int, prefix: str = "a", **change: Any) -> dict[str, Any]:
    """The first types a place, the second clicks a button; two elements count as right there."""
    targets = [["12"], ["31", "32"]][number - 1]
    operation = [{"op": "TYPE", "original_op": "TYPE", "value": "Bern"},
                 {"op": "CLICK", "original_op": "CLICK", "value": ""}][number - 1]  # fmt: skip
    return {
        "action_uid": f"{prefix}{number}",
        "raw_html": "<html>raw</html>",
        "cleaned_html": PAGES[number - 1],
        "operation": operation,
        "pos_candidates": [{"tag": "x", "backend_node_id": name, "is_original_target": True,
                            "attributes": "{}"} for name in targets],
        "neg_candidates": [],
        **change,
    }  # fmt: skip


def episode(prefix: str = "a", **change: Any) -> dict[str, Any]:
    return {
        "annotation_id": "e1",
        "website": "trains",
        "domain": "Travel",
        "subdomain": "Ground",
        "confirmed_task": "Book a train to Bern for 2 adults",
        "action_reprs": _REPRS,
        "actions": [action(1, prefix), action(2, prefix)],
        **change,
    }
