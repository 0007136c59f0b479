/// The history of a life as a table for people: time, what clients and push services do, a column
/// for each machine, and the database.
package struct TimeLine: CustomStringConvertible {
  private static let width = 118
  private static let timeWidth = 9
  /// A cell has no more lines than that.
  private static let mostLines = 4

  private enum Column: Equatable {
    case clients
    case machine(Int)
    case database
    case all
  }

  private struct Entry {
    let at: Int64
    let column: Column
    var text: String
    var count = 1
  }

  private let machines: Int
  private var entries: [Entry] = []

  /// - Parameter life: One that has been lived, and told.
  package init(_ life: Life) {
    machines = life.plan[.nodes]
    let lines = Dictionary(
      life.plan.lines.map { ("\($0)", $0) }, uniquingKeysWith: { first, _ in first })
    for (at, place, text) in life.world.history {
      if place == World.clients, let line = lines[text] {
        add(at, column(of: line), line.words)
      } else if text.hasPrefix("BROKEN: ") {
        add(at, .all, text)
      } else {
        add(at, column(of: place, in: life), text)
      }
    }
  }

  private mutating func add(_ at: Int64, _ column: Column, _ text: String) {
    if column == .database, Self.isQuiet(text) { return }
    // The same again is a number.
    if let last = entries.last, last.column == column, last.text == text {
      entries[entries.count - 1].count += 1
    } else {
      entries.append(Entry(at: at, column: column, text: text))
    }
  }

  /// Writes that come by the clock, and mean nothing.
  private static func isQuiet(_ text: String) -> Bool {
    let call = text.drop { $0 != " " }.dropFirst().drop { $0 != " " }.dropFirst()
    return call.hasPrefix("clear") || ["beat", "exchange", "join"].contains(call)
  }

  private func column(of place: Place, in life: Life) -> Column {
    if place == World.database { return .database }
    return life.machines[place].map { .machine($0) } ?? .clients
  }

  private func column(of line: Plan.Line) -> Column {
    switch line.act {
    case .kill, .stop, .pause, .suspend, .cut, .lose: .machine(min(line[0], machines - 1))
    case .step: line[0] < 0 ? .database : .machine(line[0] % machines)
    case .losses, .hang, .failover, .refuse: .database
    default: .clients
    }
  }

  // MARK: As text

  package var description: String {
    let node = max(12, min(30, (Self.width - Self.timeWidth - 66) / machines))
    let database = 32
    let clients = max(24, Self.width - Self.timeWidth - database - node * machines)
    let widths = [clients] + Array(repeating: node, count: machines) + [database]
    var text = row(
      "seconds",
      zip(widths, ["clients, services"] + (0..<machines).map { "machine \($0)" } + ["database"])
        .map { ($0, $1) })
    for entry in entries {
      let moment =
        "\(entry.at / 1_000_000_000).\("\(1_000 + entry.at / 1_000_000 % 1_000)".dropFirst())"
      let words = entry.count > 1 ? "\(entry.text) ×\(entry.count)" : entry.text
      guard entry.column != .all else {
        text += row(moment, [(Self.width - Self.timeWidth, words)])
        continue
      }
      let index =
        switch entry.column {
        case .machine(let machine): 1 + machine
        case .database: widths.count - 1
        default: 0
        }
      text += row(moment, widths.enumerated().map { ($1, $0 == index ? words : "") })
    }
    return text
  }

  private func row(_ time: String, _ cells: [(width: Int, text: String)]) -> String {
    let wrapped = cells.map { Self.wrap($0.text, $0.width - 2) }
    var text = ""
    for line in 0..<max(1, wrapped.map(\.count).max() ?? 1) {
      var written = Self.pad(line == 0 ? time : "", Self.timeWidth)
      for (cell, lines) in zip(cells, wrapped) {
        written += Self.pad(line < lines.count ? lines[line] : "", cell.width)
      }
      while written.last == " " { written.removeLast() }
      text += written + "\n"
    }
    return text
  }

  private static func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(1, width - text.count))
  }

  /// Lines of a width, broken at spaces where there are some.
  private static func wrap(_ text: String, _ width: Int) -> [String] {
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ") {
      var word = String(word)
      if !line.isEmpty, line.count + 1 + word.count > width {
        lines.append(line)
        line = ""
      }
      while word.count > width {
        lines.append(String(word.prefix(width)))
        word = String(word.dropFirst(width))
      }
      line += (line.isEmpty ? "" : " ") + word
    }
    if !line.isEmpty { lines.append(line) }
    if lines.count > mostLines, width < 80 {
      lines = Array(lines.prefix(mostLines))
      lines[mostLines - 1] = lines[mostLines - 1].prefix(width - 1) + "…"
    }
    return lines
  }
}

extension Plan.Line {
  /// What happens, with its arguments by their names.
  fileprivate var words: String {
    let values = arguments.enumerated().map { index, value in
      act == .lose && index == 1 ? StoreCalls.names[value % StoreCalls.names.count] : "\(value)"
    }
    let named = zip(act.argumentNames, values).map { "\($0) \($1)" }
    return (["\(id) \(act.rawValue):"] + [named.joined(separator: ", ")]).joined(separator: " ")
  }
}

extension Act {
  /// In their order; ``Act`` says what they mean.
  fileprivate var argumentNames: [String] {
    switch self {
    case .put: ["hub", "device", "handle", "tags", "user", "template"]
    case .patch: ["hub", "device", "tags"]
    case .delete: ["hub", "device"]
    case .register: ["hub", "handle", "tags"]
    case .send: ["hub", "kind", "expression", "keyless"]
    case .direct, .die: ["hub", "handle"]
    case .batch: ["hub", "handle", "count"]
    case .schedule: ["hub", "kind", "expression", "delay"]
    case .unregister, .cancel, .again, .abort: ["line"]
    case .credential: ["hub", "platform", "state"]
    case .deleteHub, .createHub: ["hub"]
    case .erase: ["hub", "user"]
    case .look: ["hub", "subject"]
    case .kill, .stop, .pause, .suspend: ["machine", "ms"]
    case .step: ["machine", "ms"]
    case .cut: ["machine", "ms", "ways"]
    case .lose: ["machine", "call", "after", "answer"]
    case .losses: ["ms", "thousandths"]
    case .hang: ["ms"]
    case .failover: ["ms", "commits"]
    case .refuse: ["ms", "error"]
    case .throttle: ["platform", "ms", "Retry-After"]
    case .fail: ["platform", "ms", "status", "Retry-After"]
    case .silence, .slander: ["platform", "ms"]
    case .forbid, .disconnect: ["platform", "ms", "machine + 1"]
    case .replace: ["handle", "by"]
    case .reset: ["platform", "fault"]
    case .goAway: ["platform", "reason"]
    case .withhold: ["ms", "how"]
    case .revoke: []
    }
  }
}
