// A client of grpc-js against the server at argv[2]; argv[3] has the .proto files.
'use strict';

const assert = require('node:assert');
const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const [, , address, protos] = process.argv;
const load = (file) =>
  grpc.loadPackageDefinition(
    loader.loadSync(path.join(protos, file), { includeDirs: [protos], keepCase: true, longs: Number }),
  );
const table = load('loadline/rpc/v1/table.proto').loadline.rpc.v1;
const testing = load('grpc/testing/test.proto').grpc.testing;
const options = { 'grpc.max_receive_message_length': -1 };
const credentials = grpc.credentials.createInsecure();
const calls = new table.Table(address, credentials, options);
const tests = new testing.TestService(address, credentials, options);

const unary = (client, method, request, more = {}) =>
  new Promise((resolve, reject) => {
    const take = (error, answer) => (error ? reject(error) : resolve(answer));
    client[method](request, more.metadata ?? new grpc.Metadata(), more.options ?? {}, take);
  });
const all = async (stream) => {
  const answers = [];
  for await (const answer of stream) answers.push(answer.payload.body?.length ?? 0);
  return answers;
};
const fails = async (promise, code) => {
  const error = await promise.then(
    () => assert.fail('it went well'),
    (error) => error,
  );
  assert.strictEqual(error.code, code, error.message);
};

const main = async () => {
  for (const total of [2, 4]) {
    assert.strictEqual((await unary(calls, 'Add', { value: 2 })).value, total);
  }
  // Many times the window, one alone and several at once.
  const blob = Buffer.alloc(5_000_000, 'window');
  assert.ok((await unary(calls, 'Echo', { blob })).blob.equals(blob));
  const many = Array.from({ length: 20 }, (_, n) => unary(calls, 'Echo', { blob: blob.subarray(0, n * 40_000) }));
  (await Promise.all(many)).forEach((answer, n) => assert.strictEqual(answer.blob.length, n * 40_000));
  assert.strictEqual((await unary(tests, 'UnaryCall', { response_size: 1_000_000 })).payload.body.length, 1_000_000);
  const sizes = Array.from({ length: 300 }, (_, n) => n * 311);
  const parameters = sizes.map((size) => ({ size }));
  assert.deepStrictEqual(await all(tests.StreamingOutputCall({ response_parameters: parameters })), sizes);
  const duplex = tests.FullDuplexCall();
  parameters.forEach((one) => duplex.write({ response_parameters: [one], payload: { body: Buffer.alloc(1_000) } }));
  duplex.end();
  assert.deepStrictEqual(await all(duplex), sizes);
  const summed = await new Promise((resolve, reject) => {
    const stream = tests.StreamingInputCall((error, answer) => (error ? reject(error) : resolve(answer)));
    for (let n = 0; n < 50; n += 1) stream.write({ payload: { body: Buffer.alloc(100_000) } });
    stream.end();
  });
  assert.strictEqual(summed.aggregated_payload_size, 5_000_000);
  // Another call goes on while a stream isn't read.
  const slow = tests.StreamingOutputCall({ response_parameters: [{ size: 3_000_000 }, { size: 3_000_000 }] });
  slow.pause();
  assert.strictEqual((await unary(calls, 'Add', { value: 1 })).value, 5);
  assert.deepStrictEqual(await all(slow), [3_000_000, 3_000_000]);
  await fails(unary(calls, 'Sleep', { ns: 5e9 }, { options: { deadline: Date.now() + 100 } }), grpc.status.DEADLINE_EXCEEDED);
  await fails(unary(tests, 'UnimplementedCall', {}), grpc.status.UNIMPLEMENTED);
  const echo_status = { code: 9, message: 'größe % \n x' };
  await fails(unary(tests, 'UnaryCall', { response_status: echo_status }), grpc.status.FAILED_PRECONDITION);
  const cancelled = calls.Sleep({ ns: 5e9 }, () => {});
  cancelled.cancel();
  const metadata = new grpc.Metadata();
  metadata.set('x-grpc-test-echo-initial', 'a');
  metadata.set('x-grpc-test-echo-trailing-bin', Buffer.from([0, 171, 255]));
  const seen = await new Promise((resolve, reject) => {
    const seen = {};
    const call = tests.UnaryCall({}, metadata, (error) => error && reject(error));
    call.on('metadata', (head) => (seen.head = head.get('x-grpc-test-echo-initial')));
    call.on('status', (status) => {
      resolve({ ...seen, tail: status.metadata.get('x-grpc-test-echo-trailing-bin') });
    });
  });
  assert.deepStrictEqual(seen, { head: ['a'], tail: [Buffer.from([0, 171, 255])] });
  console.log('all is right');
  calls.close();
  tests.close();
};

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
