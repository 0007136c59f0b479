import Foundation

/// The results of a run: the machine and a figure per row.
struct BenchmarkReport: Sendable {
  struct Line: Sendable {
    var name: String
    var unit: String
    var goal: BenchmarkGoal
    var measurement: BenchmarkMeasurement
  }

  var machine = MachineDescription.current()
  var lines: [Line] = []
  /// The rows that could not be measured, with the reasons.
  var failures: [Failure] = []
  /// The rows that were skipped because this machine lacks something.
  var skipped: [Failure] = []

  struct Failure: Sendable, Encodable {
    var name: String
    var reason: String
  }

  /// Measures the rows in sequence; a failing row does not stop the others.
  ///
  /// - Parameter progress: Called with the name of the row being measured.
  static func run(
    _ rows: [any BenchmarkRow], isQuick: Bool, progress: (String) -> Void
  ) async -> BenchmarkReport {
    var report = BenchmarkReport()
    for row in rows {
      progress("measuring \(row.name)…")
      do {
        let measurement = try await row.run(isQuick: isQuick)
        report.lines.append(
          Line(name: row.name, unit: row.unit, goal: row.goal, measurement: measurement))
      } catch let skip as BenchmarkSkip {
        report.skipped.append(Failure(name: row.name, reason: skip.description))
      } catch {
        report.failures.append(Failure(name: row.name, reason: "\(error)"))
      }
    }
    return report
  }

  /// The report for people.
  var table: String {
    let cells =
      [["row", "value", "unit", "goal", ""]]
      + lines.map {
        [
          $0.name, $0.measurement.value.shortest, $0.unit, $0.goal.description,
          $0.goal.isMet(by: $0.measurement.value) ? "met" : "missed",
        ]
      }
    let widths = (0..<5).map { column in cells.map { $0[column].count }.max() ?? 0 }
    let body = cells.map { row in
      zip(row, widths).map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }
        .joined(separator: "  ")
    }
    let notes = lines.flatMap { line in line.measurement.notes.map { "\(line.name): \($0)" } }
    let failed = failures.map { "\($0.name): NOT MEASURED: \($0.reason)" }
    let left = skipped.map { "\($0.name): skipped: \($0.reason)" }
    return ([machine.line, ""] + body + [""] + notes + left + failed).joined(separator: "\n")
  }

  /// The report for scripts:
  /// `{"machine":{…},"rows":[{"name","value","unit","goal","met","notes"}…],"failures":[{"name","reason"}…],"skipped":[…]}`.
  func json() throws -> String {
    struct Row: Encodable {
      var name: String
      var value: Double
      var unit: String
      var goal: Double
      var met: Bool
      var notes: [String]
    }
    struct Report: Encodable {
      var machine: MachineDescription
      var rows: [Row]
      var failures: [Failure]
      var skipped: [Failure]
    }
    let rows = lines.map {
      Row(
        name: $0.name, value: $0.measurement.value, unit: $0.unit, goal: $0.goal.bound,
        met: $0.goal.isMet(by: $0.measurement.value), notes: $0.measurement.notes)
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    return String(
      decoding: try encoder.encode(
        Report(machine: machine, rows: rows, failures: failures, skipped: skipped)),
      as: UTF8.self)
  }
}

/// A figure that Belfry promises, with its measurement.
protocol BenchmarkRow: Sendable {
  /// The name, as in design and documentation: `subject.unit_per_thing`.
  var name: String { get }
  var unit: String { get }
  var goal: BenchmarkGoal { get }
  /// Whether a quick run without names of rows includes it. Default: yes.
  var isPartOfQuickRun: Bool { get }

  /// Measures the figure.
  ///
  /// - Parameter isQuick: Whether a rough figure in a second or two is enough.
  func run(isQuick: Bool) async throws -> BenchmarkMeasurement
}

extension BenchmarkRow {
  var isPartOfQuickRun: Bool { true }
}

/// A row that consists of a measurement only.
struct FigureRow: BenchmarkRow {
  let name: String
  let unit: String
  let goal: BenchmarkGoal
  private let measure: @Sendable (_ isQuick: Bool) async throws -> BenchmarkMeasurement

  init(
    _ name: String, _ unit: String, _ goal: BenchmarkGoal,
    _ measure: @escaping @Sendable (_ isQuick: Bool) async throws -> BenchmarkMeasurement
  ) {
    (self.name, self.unit, self.goal, self.measure) = (name, unit, goal, measure)
  }

  func run(isQuick: Bool) async throws -> BenchmarkMeasurement { try await measure(isQuick) }
}

/// Figures that are measured once for several rows.
actor MeasuredOnce<Figures: Sendable> {
  private let measure: @Sendable (_ isQuick: Bool) async throws -> Figures
  private var figures: Figures?

  init(_ measure: @escaping @Sendable (_ isQuick: Bool) async throws -> Figures) {
    self.measure = measure
  }

  func figures(isQuick: Bool) async throws -> Figures {
    if let figures { return figures }
    let measured = try await measure(isQuick)
    figures = measured
    return measured
  }
}

/// The goal for a figure.
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

/// A figure with notes for the reader.
struct BenchmarkMeasurement: Sendable {
  var value: Double
  /// Notes printed below the table, one per line: conditions, and other possible limits.
  var notes: [String] = []
}

/// The error for a row that could not be measured.
struct BenchmarkError: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// The reason for skipping a row on this machine, which is not a failure.
struct BenchmarkSkip: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

extension Double {
  /// The number without `.0`, with at most three decimals.
  var shortest: String {
    let rounded = (self * 1000).rounded() / 1000
    return rounded == rounded.rounded() && abs(rounded) < 1e15
      ? String(Int64(rounded)) : String(rounded)
  }
}
