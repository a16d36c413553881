"""upb, Python's Protocol Buffers, as an oracle: a line of hexadecimal in, an answer out.

The first line is the file descriptor set. `parse HEX` answers `refused`, or the message as upb
writes it; `same HEX HEX` whether two encodings are the same message; `odd-entry HEX` of maps; `make SEED` writes one.
"""

import random
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, unknown_fields
from google.protobuf.internal import api_implementation

assert api_implementation.Type() == "upb", api_implementation.Type()
pool = descriptor_pool.DescriptorPool()
files = descriptor_pb2.FileDescriptorSet.FromString(bytes.fromhex(input()))
for file in files.file:
    pool.Add(file)
Sample = message_factory.GetMessageClass(pool.FindMessageTypeByName("loadline.rpc.v1.Sample"))


def parse(text):
    return Sample.FromString(bytes.fromhex(text))


def make(draw, depth):
    sample = Sample()
    wide = lambda: draw.choice([0, 1, -1, draw.randrange(-(2**63), 2**63), draw.randrange(300)])
    word = lambda: "".join(draw.choice("aé\0漢🚢") for _ in range(draw.randrange(20)))
    if draw.random() < 0.7:
        sample.number = wide()
    if draw.random() < 0.7:
        sample.text = word()
    if draw.random() < 0.5:
        sample.real = draw.choice([0.0, -0.0, 1e300, draw.random()])
    sample.flag = draw.random() < 0.5
    sample.blob = draw.randbytes(draw.randrange(9))
    one = draw.randrange(4)
    if one == 0:
        sample.integer = draw.choice([0, wide()])
    elif one == 1:
        sample.word = word()
    elif one == 2:
        sample.boxed.value = wide()
    sample.reals.extend(draw.random() for _ in range(draw.randrange(4)))
    for _ in range(draw.randrange(4)):
        sample.counts[word()] = wide()
    sample.signed = wide()
    sample.small = draw.choice([0, -1, draw.randrange(-(2**31), 2**31)])
    sample.wide = draw.randrange(2**64)
    sample.kind = draw.choice([0, 1, 2, 3, -1])
    if depth > 0:
        if draw.random() < 0.5:
            sample.inner.CopyFrom(make(draw, depth - 1))
        for _ in range(draw.randrange(3)):
            sample.samples.append(make(draw, depth - 1))
    if draw.random() < 0.3:
        # Fields that the type doesn't have: a number, a group, bytes.
        extra = draw.choice(["a00601", "a3060801a406", "a2060361ff00", "a506010203f4"])
        sample.MergeFromString(bytes.fromhex(extra))
    return sample


def has_odd_entry(sample):
    """Whether an entry of a map has fields that aren't known, and so is itself not known to upb."""
    unknown = unknown_fields.UnknownFieldSet(sample)
    inner = [sample.inner] if sample.HasField("inner") else []
    odd = any(field.field_number == 12 for field in unknown)
    return odd or any(has_odd_entry(one) for one in [*inner, *sample.samples])


for line in sys.stdin:
    asked, *arguments = line.split()
    if asked == "make":
        sample = make(random.Random(int(arguments[0])), 3)
        answer = "=" + sample.SerializeToString().hex()
    elif asked == "odd-entry":
        answer = str(has_odd_entry(parse(arguments[0].strip("="))))
    elif asked == "same":
        first, second = ([*arguments, "", ""])[:2]
        answer = str(parse(first.strip("=")) == parse(second.strip("=")))
    else:
        try:
            answer = "=" + parse("".join(arguments).strip("=")).SerializeToString().hex()
        except Exception:
            answer = "refused"
    print(answer, flush=True)
