// The page that a rater's link opens. What stands behind the # leaves the address at once, and goes to the server alone.
const token = location.hash.slice(1), on = document.getElementById("on");
history.replaceState(null, "", location.pathname);

async function open() {
  on.disabled = true;
  const status = await byLink(token);
  if (status === 200) { location.replace(`${BASE}/work`); return; }
  const ended = {204: WORDS.gone, 409: WORDS.elsewhere, 410: WORDS.gone}[status];  // 204: it has no token
  document.getElementById("said").textContent = ended ? `${ended} ${WORDS.new_link}` : status === 400 ? WORDS.cookies : WORDS.trouble;
  on.disabled = false;
  on.hidden = Boolean(ended);
}

addEventListener("hashchange", () => location.reload());  // another link in the same tab
on.addEventListener("click", open);
on.focus();
