// Validates objects of the Prometheus operator, as a JSON array on standard input; prints what is wrong with which.
// usage: node validate-operator.cjs FOLDER     FOLDER: what get-operator-models printed
const path = require("node:path");
const fs = require("node:fs");
const models = path.join(process.argv[2], "node_modules/@kubernetes-models/prometheus-operator");
let wrong = 0;
for (const object of JSON.parse(fs.readFileSync(0, "utf8"))) {
  const file = path.join(models, object.apiVersion, `${object.kind}.js`);
  try {
    const model = require(file)[object.kind];
    new model(object).validate();
  } catch (error) {
    wrong = 1;
    console.log(`${object.kind} ${object.metadata && object.metadata.name}: ${error.message}`);
  }
}
process.exit(wrong);
