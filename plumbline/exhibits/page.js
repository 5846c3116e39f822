"use strict";
// Tables can be sorted, copied and downloaded; without this script the page shows the same.
const cells = (row) => [...row.cells].map((cell) => cell.textContent.replaceAll("\u00a0", " ").trim());
// A spreadsheet would compute what begins like a formula; a number with its interval is none.
const number = /^[+-][\d.,]+%?( \[[\d.,%+−–\s-]*\])?$/;
const inert = (text) => (/^[=+\-@\t\r＝＋－＠]/.test(text) && !number.test(text) ? `'${text}` : text);
const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const value = (text) => parseFloat(text.replace("−", "-").replace(/^[^\d.+-]*([+-]?[\d.,]+).*/s, "$1").replaceAll(",", ""));

function sorted(table, place, ascending) {
  const numeric = table.tHead.rows[0].cells[place].classList.contains("number");
  const rows = [...table.tBodies[0].rows].map((row) => ({ row, text: cells(row)[place] }));
  const known = ({ text }) => (numeric ? !Number.isNaN(value(text)) : text !== "–" && text !== "");
  rows.sort((one, two) => {
    if (known(one) !== known(two)) return known(one) ? -1 : 1; // what is undefined stays at the end
    const difference =
      (numeric && known(one) && value(one.text) - value(two.text)) ||
      one.text.localeCompare(two.text, undefined, { numeric: true }); // days of one year, or 9 of 20 and 10 of 20
    return ascending ? difference : -difference;
  });
  table.tBodies[0].append(...rows.map(({ row }) => row));
}

function tool(name, act) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = name;
  button.addEventListener("click", () => act(button));
  return button;
}

for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    if (!head.textContent) return; // a column without a name
    const button = tool(head.textContent, () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sorted(table, place, ascending);
    });
    head.replaceChildren(button);
  });
  const lines = (write, separator) => [...table.rows].map((row) => cells(row).map(inert).map(write).join(separator)).join("\n");
  const tools = document.createElement("p");
  tools.className = "tools";
  const flat = (text) => text.replace(/\s+/g, " ");
  tools.append(
    ...(navigator.clipboard // only pages from this machine or by https have it
      ? [
          tool("Copy", async (button) => {
            await navigator.clipboard.writeText(lines(flat, "\t"));
            button.textContent = "Copied";
          }),
        ]
      : []),
    tool("Download CSV", () => {
      const link = document.createElement("a");
      link.href = `data:text/csv;charset=utf-8,${encodeURIComponent(`\ufeff${lines(quoted, ",")}\n`)}`;
      link.download = `${table.getAttribute("aria-label").replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60)}.csv`;
      link.click();
    }),
  );
  table.parentElement.after(tools);
}
