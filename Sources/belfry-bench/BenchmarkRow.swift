/// One figure that Belfry promises, and how to measure it.
protocol BenchmarkRow: Sendable {
  /// As in design and documentation, `subject.unit_per_thing`.
  var name: String { get }
  var unit: String { get }
  var goal: BenchmarkGoal { get }
  /// Whether a quick run without names of rows measures it. Default: yes.
  var isPartOfQuickRun: Bool { get }

  /// Measures.
  ///
  /// - Parameter isQuick: Whether a rough figure in a second or two is enough.
  func run(isQuick: Bool) async throws -> BenchmarkMeasurement
}

extension BenchmarkRow {
  var isPartOfQuickRun: Bool { true }
}

/// What a figure should be.
enum BenchmarkGoal: Sendable, CustomStringConvertible {
  case atMost(Double)
  case atLeast(Double)

  var bound: Double {
    switch self {
    case .atMost(let bound), .atLeast(let bound): bound
    }
  }

  func isMet(by value: Double) -> Bool {
    switch self {
    case .atMost(let bound): value <= bound
    case .atLeast(let bound): value >= bound
    }
  }

  var description: String {
    switch self {
    case .atMost(let bound): "≤ \(bound.shortest)"
    case .atLeast(let bound): "≥ \(bound.shortest)"
    }
  }
}

/// A figure and what a reader should know beside it.
struct BenchmarkMeasurement: Sendable {
  var value: Double
  /// Printed below the table, one line each: conditions, neighbours that could have been the limit.
  var notes: [String] = []
}

/// Why a row could not be measured.
struct BenchmarkError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// Why a row is left out on this machine; no failure.
struct BenchmarkSkip: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

extension Double {
  /// Without `.0`, at most three decimals.
  var shortest: String {
    let rounded = (self * 1000).rounded() / 1000
    return rounded == rounded.rounded() && abs(rounded) < 1e15
      ? String(Int64(rounded)) : String(rounded)
  }
}
