/// A row that the database knows by a number.
package protocol NumberedRow: Sendable {
  var number: Int64 { get }
}

/// Rows in the order of their numbers. Each stands in a box: who writes while an older state is
/// kept copies pointers.
package struct Table<Row: NumberedRow>: Sendable {
  private final class Box: Sendable {
    let row: Row
    init(_ row: Row) { self.row = row }
  }

  private var numbers: [Int64] = []
  private var boxes: [Box] = []

  package init() {}

  package subscript(number number: Int64) -> Row? {
    get {
      let place = place(of: number)
      return place < numbers.count && numbers[place] == number ? boxes[place].row : nil
    }
    set {
      let place = place(of: number)
      let isThere = place < numbers.count && numbers[place] == number
      switch (newValue, isThere) {
      case (let row?, true): boxes[place] = Box(row)
      case (let row?, false):
        numbers.insert(number, at: place)
        boxes.insert(Box(row), at: place)
      case (nil, true):
        numbers.remove(at: place)
        boxes.remove(at: place)
      case (nil, false): break
      }
    }
  }

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
    let rest = filter { !isMeant($0) }
    numbers = rest.map(\.number)
    boxes = rest.map(Box.init)
  }

  /// Where a number is, or would be put.
  private func place(of number: Int64) -> Int {
    var (low, high) = (0, numbers.count)
    while low < high {
      let middle = (low + high) / 2
      if numbers[middle] < number { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The rows after a number.
  package func after(_ number: Int64) -> SubSequence {
    self[(number == .max ? endIndex : place(of: number + 1))...]
  }
}

extension Table: RandomAccessCollection {
  package var startIndex: Int { 0 }
  package var endIndex: Int { boxes.count }
  package subscript(index: Int) -> Row { boxes[index].row }
}
