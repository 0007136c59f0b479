/// The history of a life as a table for people: time, what clients and push services do, a column
/// for each machine, and the database. Times are those of the plan.
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
    /// In milliseconds of the plan.
    let at: Int
    let column: Column
    var text: String
    var count = 1
  }

  private let machines: Int
  private var entries: [Entry] = []
  /// Short forms of the ids of notifications.
  private var shortIDs: [(id: String, text: String)] = []

  /// - Parameter life: One that has been lived, and told.
  package init(_ life: Life) {
    machines = life.plan[.nodes]
    let lines = Dictionary(
      life.plan.lines.map { ("\($0)", $0) }, uniquingKeysWith: { first, _ in first })
    for (_, place, text) in life.world.history where place == World.clients {
      noteID(in: text)
    }
    for (at, place, text) in life.world.history {
      let at = life.planTime(Double(at) / 1e9)
      if place == World.clients, let line = lines[text] {
        add(at, column(of: line), line.words)
      } else if text.hasPrefix("BROKEN: ") {
        add(at, .all, shortened(text))
      } else {
        add(at, column(of: place, in: life), shortened(text))
      }
    }
  }

  /// Learns from `17 is accepted as ID` that ID is the notification of line 17.
  private mutating func noteID(in text: String) {
    let words = text.split(separator: " ")
    guard words.count == 5, words[1...3] == ["is", "accepted", "as"] else { return }
    let id = String(words[4])
    guard !shortIDs.contains(where: { $0.id == id }) else { return }
    var short = "n\(words[0])"
    // A repeat that has made another one.
    while shortIDs.contains(where: { $0.text == short }) { short += "'" }
    shortIDs.append((id, short))
  }

  private func shortened(_ text: String) -> String {
    // An id has dashes or underlines, and most texts have none.
    guard text.contains("-") || text.contains("_") else { return text }
    return shortIDs.reduce(text) { $0.replacing($1.id, with: $1.text) }
  }

  private mutating func add(_ at: Int, _ column: Column, _ text: String) {
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

  private func column(of place: ProcessID, in life: Life) -> Column {
    if place == World.database { return .database }
    return life.machines[place].map { .machine($0) } ?? .clients
  }

  private func column(of line: Plan.Line) -> Column {
    switch line.act {
    case .kill, .stop, .pause, .suspend, .cut, .lose: .machine(line[0])
    case .step: line[0] < 0 ? .database : .machine(line[0])
    case .losses, .hang, .failover, .restore, .refuse: .database
    default: .clients
    }
  }

  // MARK: As text

  private static let key = """
    Times are those of the plan; nodes begin a little before it. Each machine has one node at a time.
    A client's line begins with its number in the plan; n17 is the notification of line 17. 1008 is
    handle 8: the last digits of a handle are 1000 and its number, in hexadecimal.

    """

  package var description: String {
    let node = max(12, min(30, (Self.width - Self.timeWidth - 66) / machines))
    let database = 32
    let clients = max(24, Self.width - Self.timeWidth - database - node * machines)
    let widths = [clients] + Array(repeating: node, count: machines) + [database]
    var text =
      Self.key
      + row(
        "seconds",
        zip(widths, ["clients, services"] + (0..<machines).map { "machine \($0)" } + ["database"])
          .map { ($0, $1) })
    for entry in entries {
      let moment = Texts.seconds(entry.at)
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
  /// The act with its arguments and their names.
  fileprivate var words: String {
    let named = zip(act.arguments, arguments).map { name, value in
      "\(name) \(name == "call" ? StoreCalls.names[value % StoreCalls.names.count] : "\(value)")"
    }
    return (["\(id) \(act.rawValue):"] + [named.joined(separator: ", ")]).joined(separator: " ")
  }
}
