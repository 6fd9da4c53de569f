// Drives a headless Chromium with Playwright for web_page.py. Each line of the input is
// {"code", "arguments"}; the code is the body of an async function with `page`, `open` and these
// arguments. Each line of the output is {"value"} or {"error"}.
//
//   node web_page.mjs NODE_MODULES CHROMIUM

import {createRequire} from "node:module";
import {createInterface} from "node:readline";

const [modules, executablePath] = process.argv.slice(2);
const {chromium} = createRequire(`${modules}/`)("playwright-core");
const browser = await chromium.launch({
  executablePath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--autoplay-policy=no-user-gesture-required"],
});
const axe = createRequire(`${modules}/`).resolve("axe-core/axe.min.js");
let page = null;

// Opens a page of its own and gives what went wrong in it, and what it asked for, as they come:
// {problems, requests}.
async function open(url, options) {
  await page?.context().close();
  const context = await browser.newContext(options);
  await context.addInitScript({path: axe});
  await context.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
      window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  page = await context.newPage();
  page.setDefaultTimeout(60000);
  page.seen = {problems: [], requests: []};
  page.on("pageerror", (error) => page.seen.problems.push(String(error.stack)));
  page.on("console", (message) => {
    // That an answer was 404 or 503 is for the page to deal with.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) {
      page.seen.problems.push(message.text());
    }
  });
  page.on("request", (request) => page.seen.requests.push(request.url()));
  page.on("dialog", (dialog) => dialog.accept());
  await page.goto(url, {waitUntil: "commit"});
}

const AsyncFunction = (async () => {}).constructor;
for await (const line of createInterface({input: process.stdin})) {
  const {code, arguments: given} = JSON.parse(line);
  let answer;
  try {
    const run = new AsyncFunction("page", "open", ...Object.keys(given), code);
    answer = {value: (await run(page, open, ...Object.values(given))) ?? null};
  } catch (error) {
    answer = {error: String(error.stack)};
  }
  console.log(JSON.stringify(answer));
}
await browser.close();
