/** Numbers as the inspection carries them, the sums of the paper, and how they are written. */

/** The value of every half-precision number, by its bits: made once, on first use. */
let halves = null;

function half(bits) {
  if (halves === null) {
    halves = Float32Array.from({length: 65536}, (_, at) => {
      const sign = at & 0x8000 ? -1 : 1;
      const exponent = (at >> 10) & 0x1f;
      const fraction = at & 0x3ff;
      if (exponent === 31) return fraction ? NaN : sign * Infinity;
      return exponent ? sign * 2 ** (exponent - 15) * (1 + fraction / 1024) : sign * 2 ** -14 * (fraction / 1024);
    });
  }
  return halves[bits];
}

/** {shape, data: base64 of float16}: `matrix(...)` gives the last two dimensions at the leading ones. */
export function tensor({shape, data}) {
  const text = atob(data);
  const bits = new Uint16Array(text.length / 2);
  for (let at = 0; at < bits.length; at += 1) bits[at] = text.charCodeAt(2 * at) | (text.charCodeAt(2 * at + 1) << 8);
  const [rows, columns] = shape.slice(-2);
  return {
    shape,
    matrix(...leading) {
      const place = leading.reduce((sum, index, dimension) => sum * shape[dimension] + index, 0);
      return {
        rows,
        columns,
        values: Float32Array.from(bits.subarray(place * rows * columns, (place + 1) * rows * columns), half),
      };
    },
  };
}

export function row(matrix, index) {
  return matrix.values.subarray(index * matrix.columns, (index + 1) * matrix.columns);
}

export function column(matrix, index) {
  return Float32Array.from({length: matrix.rows}, (_, at) => matrix.values[at * matrix.columns + index]);
}

/** A matrix whose numbers are `value(row, column)`. */
export function filled(rows, columns, value) {
  const values = new Float32Array(rows * columns);
  for (let at = 0; at < values.length; at += 1) values[at] = value(Math.floor(at / columns), at % columns);
  return {rows, columns, values};
}

export function product(left, right) {
  const made = filled(left.rows, right.columns, () => 0);
  for (let at = 0; at < left.rows; at += 1) {
    for (let middle = 0; middle < left.columns; middle += 1) {
      const factor = left.values[at * left.columns + middle];
      if (factor === 0) continue;
      for (let to = 0; to < right.columns; to += 1) {
        made.values[at * right.columns + to] += factor * right.values[middle * right.columns + to];
      }
    }
  }
  return made;
}

export const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

export const dot = (left, right) => left.reduce((total, number, at) => total + number * right[at], 0);

export function largest(numbers) {
  return numbers.reduce((best, number, at) => (number > numbers[best] ? at : best), 0);
}

/** The places of the `count` largest numbers, largest first. */
export function strongest(numbers, count) {
  return Array.from(numbers.keys())
    .sort((one, other) => numbers[other] - numbers[one])
    .slice(0, count);
}

/** 0.431 as "43 %", 0.0312 as "3.1 %", never broken across lines. */
export function percent(share) {
  return `${(100 * share).toFixed(share >= 0.0005 && share < 0.0995 ? 1 : 0)}\u00a0%`;
}

/** A number with a true minus sign, so that columns of them line up. */
export function decimal(number, places = 2) {
  return number.toFixed(places).replace("-", "−");
}

/** The paper's waves: by how much position `position` turns pair `pair` of `width` dimensions, in radians. */
export function angle(position, pair, width) {
  return position / 10000 ** ((2 * pair) / width);
}
