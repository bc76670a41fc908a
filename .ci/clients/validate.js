// Validates documents against schemas with ajv in strict mode. Any warning ends the program.
// validate.py describes questions and answers.
const fs = require("fs");
const readline = require("readline");
const Ajv = require("ajv/dist/2020").default;
const addFormats = require("ajv-formats").default;

const stop = (...words) => {
  console.error(...words);
  process.exit(1);
};
const ajv = new Ajv({ strict: true, logger: { log: stop, warn: stop, error: stop } });
addFormats(ajv);

const validators = new Map();
function validator(path) {
  if (!validators.has(path)) {
    validators.set(path, ajv.compile(JSON.parse(fs.readFileSync(path, "utf8"))));
  }
  return validators.get(path);
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const question = JSON.parse(line);
  console.log(validator(question.schema)(JSON.parse(question.text)));
});
