/// A life before it is lived: the world's parameters, and what happens in it at which moment. Made
/// from a seed (``PlanMaker``), kept as text, shortened by leaving out lines (``Shrinker``).
package struct Plan: Equatable, Sendable {
  /// Rises when the same text would be another life.
  package static let version = 1

  /// A happening from outside: what a client does, or what goes wrong.
  package struct Line: Equatable, Sendable {
    /// Later lines refer to it by this, and what it draws depends on nothing else.
    package let id: Int
    /// In milliseconds.
    package var at: Int
    package var act: Act
    /// Those of ``Act/arguments``.
    package var arguments: [Int]

    package init(id: Int, at: Int, _ act: Act, _ arguments: [Int]) {
      self.id = id
      self.at = at
      self.act = act
      self.arguments = arguments
    }

    /// When it is over, in milliseconds: a restore goes on once it has begun, and a schedule is sent.
    var end: Int {
      switch act {
      case .restore: at + self[0]
      case .schedule: at + self[3]
      default: at
      }
    }

    /// 0 where the line has none.
    package subscript(index: Int) -> Int {
      index < arguments.count ? arguments[index] : 0
    }
  }

  /// The parameters of a world, each a whole number.
  package enum Parameter: String, CaseIterable, Sendable {
    case nodes, slots, hubs, devices
    /// Targets of one page.
    case page
    /// Lifetime of a notification in the hub, in seconds.
    case window
    /// Parts of notifications that a node works on at a time.
    case parts
    /// Targets that a node holds in memory; its other limits are as much smaller than usual.
    case held
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
    /// Push services: 2 are APNs and FCM, 4 WNS and Web Push as well.
    case platforms

    package var defaultValue: Int {
      switch self {
      case .nodes: 2
      case .slots: 4
      case .hubs: 1
      case .devices: 24
      case .page: 4
      case .window: 1_800
      case .parts: 256
      case .held: 64_000
      case .order, .outcomes, .drift: 0
      case .latency: 100
      case .synchronous: 1
      case .platforms: 2
      }
    }

    /// The values that it may have; of ``slots`` and ``platforms`` only powers of two.
    var range: ClosedRange<Int> {
      switch self {
      case .nodes: 1...5
      case .slots, .hubs: 1...8
      case .devices, .page: 1...1_000
      case .window: 1...604_800
      case .parts: 1...65_536
      case .held: 4...64_000
      case .order: 0...World.Order.allCases.count - 1
      case .outcomes, .synchronous: 0...1
      case .drift: 0...100_000
      case .latency: 1...10_000
      case .platforms: 2...4
      }
    }
  }

  package var seed: UInt64
  package var parameters: [Parameter: Int] = [:]
  /// In the order of their times.
  package var lines: [Line] = []

  package init(seed: UInt64) { self.seed = seed }

  package subscript(parameter: Parameter) -> Int { parameters[parameter] ?? parameter.defaultValue }

  /// The end of the last happening, in seconds. Schedules may be due later.
  package var length: Double {
    Double(lines.map { $0.act == .schedule ? $0.at : $0.end }.max() ?? 0) / 1_000
  }
}

extension Plan: CustomStringConvertible {
  package var description: String {
    var text = "belfry simulation \(Self.version)\nseed \(seed)\n"
    for parameter in Parameter.allCases where parameters[parameter] != nil {
      text += "\(parameter.rawValue) \(self[parameter])\n"
    }
    for line in lines { text += "\(line)\n" }
    return text
  }

  /// Why a text is no plan.
  package struct Fault: Error, CustomStringConvertible {
    package let description: String
  }

  /// - Throws: ``Fault``, with the number of the line.
  package init(_ text: String) throws {
    self.init(seed: 0)
    var hasBegun = false
    var hasSeed = false
    // The meaning of lines depends on parameters, which may come later in the text.
    var numbers: [Int] = []
    var lastLimit = 0
    // A carriage return and a line feed are one character.
    let rows = text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
    for (index, row) in rows.enumerated() {
      let words = row.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace).map(String.init)
      guard let first = words.first else { continue }
      do {
        if !hasBegun {
          try Self.checkVersion(words)
          hasBegun = true
        } else if first == "seed" {
          guard !hasSeed else { throw Fault(description: "seed is there already") }
          guard words.count == 2, let value = UInt64(words[1]) else {
            throw Fault(
              description: "seed needs a number from 0 to \(UInt64.max)\(Self.instead(words))")
          }
          seed = value
          hasSeed = true
        } else if Double(first) == nil {
          try addParameter(words)
          if ["held", "page"].contains(first) { lastLimit = index + 1 }
        } else {
          lines.append(try Line(words))
          numbers.append(index + 1)
        }
      } catch let fault as Fault {
        throw Fault(description: "line \(index + 1): \(fault)")
      }
    }
    guard hasBegun else { throw Fault(description: "the plan is empty") }
    guard hasSeed else { throw Fault(description: "the plan has no line 'seed NUMBER'") }
    if let fault = parameterFault { throw Fault(description: "line \(lastLimit): \(fault)") }
    if let (index, reason) = firstFault {
      throw Fault(description: "line \(numbers[index]): \(reason)")
    }
  }

  private static func checkVersion(_ words: [String]) throws {
    guard words.count == 3, words[0] == "belfry", words[1] == "simulation" else {
      throw Fault(description: "a plan begins with 'belfry simulation \(version)'")
    }
    guard Int(words[2]) == version else {
      throw Fault(
        description: "it is of version \(words[2]), and this simulator is of version "
          + "\(version): play it with the commit that wrote it")
    }
  }

  private mutating func addParameter(_ words: [String]) throws {
    guard let parameter = Parameter(rawValue: words[0]) else {
      throw Fault(
        description: "a line begins with SECONDS or a parameter, and '\(words[0])' is neither; "
          + "parameters are seed, " + Parameter.allCases.map(\.rawValue).joined(separator: ", "))
    }
    guard parameters[parameter] == nil else {
      throw Fault(description: "\(parameter.rawValue) is there already")
    }
    let range = parameter.range
    guard words.count == 2, let value = Int(words[1]), range.contains(value) else {
      throw Fault(
        description: "\(parameter.rawValue) needs a number from \(range.lowerBound) to "
          + "\(range.upperBound)\(Self.instead(words))")
    }
    guard parameter != .slots || value.nonzeroBitCount == 1 else {
      throw Fault(description: "slots needs a power of two: 1, 2, 4 or 8, not \(value)")
    }
    guard parameter != .platforms || value != 3 else {
      throw Fault(description: "platforms needs 2 or 4, not 3")
    }
    parameters[parameter] = value
  }

  /// The end of a message, which quotes the words given in place of one value.
  private static func instead(_ words: [String]) -> String {
    words.count > 1 ? ", not '\(words.dropFirst().joined(separator: " "))'" : ""
  }

  /// Whether each line can happen in this world. Leaving out lines and parameters may end that.
  package var isSound: Bool { parameterFault == nil && firstFault == nil }

  /// Parameters that do not go together.
  private var parameterFault: Fault? {
    guard self[.held] < self[.page] else { return nil }
    return Fault(
      description: "held is at least page, which is \(self[.page]): a node reads whole pages")
  }

  /// The longest plan, in milliseconds.
  private static let longest = 86_400_000

  /// The first line that cannot happen, by its index, and why.
  private var firstFault: (index: Int, reason: String)? {
    var earlier: [Int: Act] = [:]
    var last = 0
    for (index, line) in lines.enumerated() {
      if line.at < last { return (index, "it is earlier than the line before it") }
      last = line.at
      for (name, value) in zip(line.act.arguments, line.arguments) {
        let range = line.act.range(of: name, in: self)
        guard range.contains(value) else {
          var wider = self
          wider.parameters[.platforms] = 4
          let needsFourPlatforms = line.act.range(of: name, in: wider).contains(value)
          return (
            index,
            "\(line.act.rawValue): \(name) is a number from \(range.lowerBound) to "
              + "\(range.upperBound), not \(value)"
              + (needsFourPlatforms ? ", which needs platforms 4" : "")
          )
        }
      }
      if line.act == .replace,
        Names.platform(ofHandle: line[0]) != Names.platform(ofHandle: line[1])
      {
        return (index, "replace: by is of the service of handle \(line[0]), and \(line[1]) is not")
      }
      guard line.end <= Self.longest else {
        return (
          index,
          "a plan is of a day (\(Self.longest / 1_000) s) at most, and this is until "
            + "\(Texts.seconds(line.end)) s"
        )
      }
      let references = line.act.references
      if !references.isEmpty, !(earlier[line[0]].map { references.contains($0) } ?? false) {
        let names = Act.allCases.filter(references.contains).map(\.rawValue)
        return (
          index,
          "\(line.act.rawValue): \(line[0]) is not the number of an earlier "
            + names.joined(separator: ", ")
        )
      }
      if earlier.updateValue(line.act, forKey: line.id) != nil {
        return (index, "there is a line with the number \(line.id) already")
      }
    }
    return nil
  }
}

extension Plan.Line: CustomStringConvertible {
  package var description: String {
    ([Texts.seconds(at), "\(id)", act.rawValue] + arguments.map { "\($0)" })
      .joined(separator: " ")
  }

  fileprivate init(_ words: [String]) throws {
    guard words.count >= 3 else {
      throw Plan.Fault(description: "a line is 'SECONDS NUMBER ACT ARGUMENTS'")
    }
    guard let seconds = Double(words[0]), seconds >= 0, seconds <= 1e6 else {
      throw Plan.Fault(description: "SECONDS is a number from 0 to 1000000, not '\(words[0])'")
    }
    guard let id = Int(words[1]), 0...1_000_000 ~= id else {
      throw Plan.Fault(description: "NUMBER is from 0 to 1000000, not '\(words[1])'")
    }
    guard let act = Act(rawValue: words[2]) else {
      throw Plan.Fault(
        description: "there is no act '\(words[2])': they are "
          + Act.allCases.map(\.rawValue).joined(separator: ", "))
    }
    let names = act.arguments
    guard words.count - 3 == names.count else {
      let list = names.isEmpty ? "" : " (\(names.joined(separator: ", ")))"
      throw Plan.Fault(
        description: "\(act.rawValue) takes \(names.count) argument\(names.count == 1 ? "" : "s")"
          + "\(list), not \(words.count - 3)")
    }
    let arguments = try zip(names, words.dropFirst(3)).map { name, word in
      guard let value = Int(word) else {
        throw Plan.Fault(description: "\(act.rawValue): \(name) needs a number, not '\(word)'")
      }
      return value
    }
    self.init(id: id, at: Int((seconds * 1_000).rounded()), act, arguments)
  }
}
