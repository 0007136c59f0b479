/// A life before it is lived: the world's measures, and what happens in it at which moment. Made
/// from a seed (``PlanMaker``), kept as text, shortened by leaving out lines (``Shrinker``).
package struct Plan: Equatable, Sendable {
  /// Rises when the same text would be another life.
  package static let version = 1

  /// A happening from outside: what a client does, or what goes wrong.
  package struct Line: Equatable, Sendable {
    /// Later lines refer to it by this; its draws hang on it alone.
    package let id: Int
    /// In milliseconds.
    package var at: Int
    package var act: Act
    /// Their meaning is told with each ``Act``.
    package var arguments: [Int]

    package init(id: Int, at: Int, _ act: Act, _ arguments: [Int]) {
      self.id = id
      self.at = at
      self.act = act
      self.arguments = arguments
    }

    /// 0 where the line has none.
    package subscript(index: Int) -> Int {
      index < arguments.count ? arguments[index] : 0
    }
  }

  /// The measures of a world, each a whole number.
  package enum Measure: String, CaseIterable, Sendable {
    case nodes, slots, hubs, devices
    /// Targets of one page.
    case page
    /// How long a notification lives in the hub, in seconds.
    case window
    /// Parts of notifications that a node works on at a time.
    case parts
    /// A value of ``World/Order``.
    case order
    /// Whether the outcome of each device is kept.
    case outcomes
    /// The largest drift of a machine's clock, in millionths.
    case drift
    /// Time between two calls and their answers: 100 is as on a quiet network.
    case latency
    /// Whether a failover keeps what was committed last.
    case synchronous

    package var usual: Int {
      switch self {
      case .nodes: 2
      case .slots: 4
      case .hubs: 1
      case .devices: 24
      case .page: 4
      case .window: 1_800
      case .parts: 256
      case .order, .outcomes, .drift: 0
      case .latency: 100
      case .synchronous: 1
      }
    }
  }

  package var seed: UInt64
  package var measures: [Measure: Int] = [:]
  /// In the order of their times.
  package var lines: [Line] = []

  package init(seed: UInt64) { self.seed = seed }

  package subscript(measure: Measure) -> Int { measures[measure] ?? measure.usual }

  /// The end of the last happening, in seconds.
  package var length: Double { Double(lines.map(\.at).max() ?? 0) / 1_000 }
}

extension Plan: CustomStringConvertible {
  package var description: String {
    var text = "belfry simulation \(Self.version)\nseed \(seed)\n"
    for measure in Measure.allCases where measures[measure] != nil {
      text += "\(measure.rawValue) \(self[measure])\n"
    }
    for line in lines { text += "\(line)\n" }
    return text
  }

  /// Why a text is no plan.
  package struct Fault: Error, CustomStringConvertible {
    package let description: String
  }

  /// - Throws: ``Fault``.
  package init(_ text: String) throws {
    self.init(seed: 0)
    var number = 0
    for row in text.split(separator: "\n", omittingEmptySubsequences: false) {
      number += 1
      let words = row.prefix { $0 != "#" }.split(separator: " ")
      guard let first = words.first else { continue }
      let rest = words.dropFirst()
      func fault(_ what: String) -> Fault { Fault(description: "line \(number): \(what)") }
      if number == 1 {
        guard words.count == 3, words[0] == "belfry", words[1] == "simulation" else {
          throw fault("a plan begins with 'belfry simulation \(Self.version)'")
        }
        guard Int(words[2]) == Self.version else {
          throw fault(
            "it is of version \(words[2]), and this simulator is of version \(Self.version): play it "
              + "with the commit that wrote it")
        }
      } else if first == "seed", let value = rest.first.flatMap({ UInt64($0) }) {
        seed = value
      } else if let measure = Measure(rawValue: String(first)) {
        guard let value = rest.first.flatMap({ Int($0) }), value >= 0 else {
          throw fault("\(measure.rawValue) wants a number")
        }
        measures[measure] = value
      } else {
        guard let line = Line(words) else {
          throw fault("'\(row)' is neither a measure nor 'SECONDS NUMBER ACT ARGUMENTS'")
        }
        lines.append(line)
      }
    }
    guard number > 0, !text.isEmpty else { throw Fault(description: "the plan is empty") }
  }
}

extension Plan.Line: CustomStringConvertible {
  package var description: String {
    let thousandths = "\(1_000 + at % 1_000)".dropFirst()
    return (["\(at / 1_000).\(thousandths)", "\(id)", act.rawValue] + arguments.map { "\($0)" })
      .joined(separator: " ")
  }

  fileprivate init?(_ words: [Substring]) {
    guard words.count >= 3, let seconds = Double(words[0]), seconds >= 0, seconds < 1e9,
      let id = Int(words[1]), let act = Act(rawValue: String(words[2]))
    else { return nil }
    let arguments = words.dropFirst(3).map { Int($0) }
    guard !arguments.contains(nil) else { return nil }
    self.init(id: id, at: Int((seconds * 1_000).rounded()), act, arguments.compactMap { $0 })
  }
}
