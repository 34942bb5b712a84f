// morph changes the children of an element to those of a piece of HTML with few DOM
// changes, so that focus, selection, scroll position and open details stay.
export function morph(element, html) {
  const wanted = document.createElement("template");
  wanted.innerHTML = html;
  children(element, wanted.content);
}

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id : "");

function alike(a, b) {
  return a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);
}

function children(have, want) {
  const byId = new Map();
  for (const child of have.children) if (child.id) byId.set(child.id, child);
  let at = have.firstChild;
  for (const wanted of [...want.childNodes]) {
    const key = keyOf(wanted);
    let found = null;
    if (key && byId.has(key)) found = byId.get(key);
    else if (at && alike(at, wanted)) found = at;
    if (found && found.nodeName === wanted.nodeName) {
      if (found === at) at = at.nextSibling;
      else have.insertBefore(found, at);
      node(found, wanted);
    } else have.insertBefore(wanted, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function node(have, want) {
  if (have.nodeType !== Node.ELEMENT_NODE) {
    if (have.nodeValue !== want.nodeValue) have.nodeValue = want.nodeValue;
    return;
  }
  // The input of a person must not be overwritten.
  if (have.matches("input, textarea, select") && !have.matches("[type=hidden]")) return;
  for (const { name, value } of want.attributes) if (have.getAttribute(name) !== value) have.setAttribute(name, value);
  for (const { name } of [...have.attributes]) {
    if (!want.hasAttribute(name) && !(name === "open" && have.nodeName === "DETAILS")) have.removeAttribute(name);
  }
  children(have, want);
}
