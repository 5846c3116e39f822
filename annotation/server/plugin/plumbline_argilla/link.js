// The page that a rater's link opens. What stands behind the # leaves the address at once, and goes to the server alone.
const token = location.hash.slice(1), on = document.getElementById("on");
history.replaceState(null, "", location.pathname);

async function open() {
  on.disabled = true;
  const status = await byLink(token);
  if (status === 200) { location.replace(`${BASE}/work`); return; }
  document.getElementById("said").textContent = {
    400: WORDS.cookies, 409: `${WORDS.elsewhere} ${WORDS.new_link}`, 410: `${WORDS.gone} ${WORDS.new_link}`,
  }[status] || WORDS.trouble;
  on.disabled = false;
  on.hidden = status === 409 || status === 410;
}

addEventListener("hashchange", () => location.reload());  // another link in the same tab
on.addEventListener("click", open);
on.focus();
