import HubCore

/// A row whose key is a number.
package protocol NumberedRow: Sendable {
  var number: Int64 { get }
  /// Whether the row is unfinished; such rows are found without a scan.
  var isActive: Bool { get }
}

extension NumberedRow { package var isActive: Bool { false } }

/// Rows in the order of their numbers. Each stands in a box: who writes while an older state is
/// kept copies pointers.
package struct Table<Row: NumberedRow>: Sendable {
  private final class Box: Sendable {
    let number: Int64
    let row: Row

    init(_ row: Row) {
      number = row.number
      self.row = row
    }
  }

  private var boxes: [Box] = []
  /// Those of ``boxes`` whose rows are unfinished.
  private var activeBoxes: [Box] = []

  package init() {}

  /// The index of a number, or the one at which it would be inserted.
  private static func place(of number: Int64, in boxes: [Box]) -> (place: Int, isThere: Bool) {
    var (low, high) = (0, boxes.count)
    while low < high {
      let middle = (low + high) / 2
      if boxes[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return (low, low < boxes.count && boxes[low].number == number)
  }

  private static func put(_ box: Box?, at number: Int64, in boxes: inout [Box]) {
    let (place, isThere) = place(of: number, in: boxes)
    switch (box, isThere) {
    case (let box?, true): boxes[place] = box
    case (let box?, false): boxes.insert(box, at: place)
    case (nil, true): boxes.remove(at: place)
    case (nil, false): break
    }
  }

  private func box(of number: Int64) -> Box? {
    let (place, isThere) = Self.place(of: number, in: boxes)
    return isThere ? boxes[place] : nil
  }

  package subscript(number number: Int64) -> Row? {
    get { box(of: number)?.row }
    set {
      let box = newValue.map(Box.init)
      Self.put(box, at: number, in: &boxes)
      Self.put(newValue?.isActive == true ? box : nil, at: number, in: &activeBoxes)
    }
  }

  /// The identity of a row's present version: another object once the row is written.
  package func version(of number: Int64) -> AnyObject? { box(of: number) }

  /// Writes a row that is new, or replaces the one of its number.
  package mutating func put(_ row: Row) { self[number: row.number] = row }

  /// - Returns: `nil` when there is no such row, and what `body` returns otherwise.
  @discardableResult
  package mutating func change<Value>(
    _ number: Int64, _ body: (inout Row) throws -> Value
  ) rethrows -> Value? {
    guard var row = self[number: number] else { return nil }
    let value = try body(&row)
    self[number: number] = row
    return value
  }

  package mutating func removeAll(where isMeant: (Row) -> Bool) {
    guard contains(where: isMeant) else { return }
    boxes.removeAll { isMeant($0.row) }
    activeBoxes.removeAll { isMeant($0.row) }
  }

  package var active: [Row] { activeBoxes.map(\.row) }

  package func active(where isMeant: (Row) -> Bool) -> [Row] {
    var rows: [Row] = []
    for box in activeBoxes where isMeant(box.row) { rows.append(box.row) }
    return rows
  }

  /// The first rows after a number that are meant.
  package func first(
    _ limit: Int, after number: Int64, where isMeant: (Row) -> Bool
  ) -> [Row] {
    var rows: [Row] = []
    for place in after(number).indices where isMeant(boxes[place].row) {
      if rows.count >= limit { break }
      rows.append(boxes[place].row)
    }
    return rows
  }

  /// The rows after a number.
  package func after(_ number: Int64) -> SubSequence {
    self[(number == .max ? endIndex : Self.place(of: number + 1, in: boxes).place)...]
  }
}

extension Table: RandomAccessCollection {
  package var startIndex: Int { 0 }
  package var endIndex: Int { boxes.count }
  package subscript(index: Int) -> Row { boxes[index].row }
}

/// As a collection has them; these copy no row that is not meant, and a row has much to count.
extension Table {
  package func filter(_ isMeant: (Row) throws -> Bool) rethrows -> [Row] {
    var rows: [Row] = []
    for box in boxes where try isMeant(box.row) { rows.append(box.row) }
    return rows
  }

  package func contains(where isMeant: (Row) throws -> Bool) rethrows -> Bool {
    for box in boxes where try isMeant(box.row) { return true }
    return false
  }

  package func first(where isMeant: (Row) throws -> Bool) rethrows -> Row? {
    for box in boxes where try isMeant(box.row) { return box.row }
    return nil
  }

  package func count(where isMeant: (Row) throws -> Bool) rethrows -> Int {
    var count = 0
    for box in boxes where try isMeant(box.row) { count += 1 }
    return count
  }

  package func allSatisfy(_ isMeant: (Row) throws -> Bool) rethrows -> Bool {
    try !contains { try !isMeant($0) }
  }
}

/// Returns one page of a list, and the position after which the next page begins.
/// - Parameter shown: Returns `nil` for a row that the list leaves out.
func listPage<Position, Row, Shown>(
  of rows: some Sequence<(Position, Row)>, limit: Int, _ shown: (Row) -> Shown?
) -> (all: [Shown], next: Position?) {
  var all: [Shown] = []
  var last: Position?
  for (position, row) in rows {
    if all.count >= limit { return (all, last) }
    last = position
    if let one = shown(row) { all.append(one) }
  }
  return (all, nil)
}

/// The hub that has the most, which makes room when a table is full.
func largest(_ counts: some Sequence<(Hub.ID, Int)>) -> Hub.ID? {
  Dictionary(counts, uniquingKeysWith: +).max { ($0.value, $0.key) < ($1.value, $1.key) }?.key
}
