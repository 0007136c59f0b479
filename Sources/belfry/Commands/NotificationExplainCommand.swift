import NotificationHubs

/// `belfry notification explain`
struct NotificationExplainCommand: Subcommand {
  static let help = CommandHelp(
    "notification explain", "tell why a device did or did not get a notification",
    arguments: [("ID", "what `belfry send` printed")],
    options: ClientOptions.options + [
      .value("--installation", "ID", "the device, as its app calls it"),
      .value("--registration", "ID", "or one registration"),
      .flag("--payload", "show the payload, however long it is"),
    ],
    discussion: """
      Says what the hub knows: whether the device was there, which tags decided, what was rendered
      and how large it is, what the push service answered, how often it was tried and when it is
      tried next. Tags and templates are those of now; when they have changed since, it says so.

      Belfry only; needs the Manage right. Exit code 1 when the device did not get it.
      \(HubTarget.note)
      """,
    examples: ["belfry notification explain ID --installation 4f6d2a --json"])

  let id: String
  let device: (option: String, id: String)
  let isWhole: Bool
  let client: ClientOptions

  init(_ words: Words) throws {
    id = try words.argument(0)
    client = ClientOptions(words: words)
    isWhole = words.flag("--payload")
    switch (words.value("--installation"), words.value("--registration")) {
    case (let id?, nil): device = ("installation", id)
    case (nil, let id?): device = ("registration", id)
    case (nil, nil): throw words.fault("say which device: --installation ID, or --registration ID")
    case (_?, _?): throw words.fault("--installation and --registration exclude each other")
    }
  }

  func run(in context: CommandContext) async throws {
    let access = try await client.access(.looks("Manage"), in: context)
    let explanation = try await access.calling {
      device.option == "installation"
        ? try await access.client.explanation(of: id, installation: device.id)
        : try await access.client.explanation(of: id, registration: device.id)
    }
    if client.json {
      context.print(String(decoding: explanation.json, as: UTF8.self))
    } else {
      for line in ExplanationText(explanation, isWhole: isWhole).lines { context.print(line) }
    }
    guard Self.isFine(explanation.verdict) else {
      throw CommandFailure("\(device.option) \(device.id): \(explanation.verdict.rawValue)")
    }
  }

  private static func isFine(_ verdict: NotificationExplanation.Verdict) -> Bool {
    [.delivered, .duplicate, .waiting, .retrying, .scheduled].contains(verdict)
  }
}

/// An explanation in lines of at most 80 columns.
struct ExplanationText {
  private let explanation: NotificationExplanation
  private let isWhole: Bool
  private static let width = 80
  /// How much of a payload is shown, in characters.
  private static let excerpt = 600

  init(_ explanation: NotificationExplanation, isWhole: Bool) {
    self.explanation = explanation
    self.isWhole = isWhole
  }

  var lines: [String] {
    var lines = Self.wrap(explanation.text, first: "", rest: "")
    lines.append("")
    lines += explanation.facts.flatMap { Self.fact($0, indent: "") }
    for candidate in explanation.candidates { lines += [""] + self.lines(candidate) }
    return lines
  }

  private func lines(_ candidate: NotificationExplanation.Candidate) -> [String] {
    var title = candidate.platform?.rawValue ?? "a platform that is not known any more"
    if let template = candidate.template {
      title += template.isEmpty ? " template" : " template '\(template)'"
    } else {
      title += " native"
    }
    var lines = ["\(title): \(candidate.verdict.rawValue)"]
    if let id = candidate.registrationID { lines.append("  registration \(id)") }
    // Each sentence once: the first registration's is the conclusion above, and that of one which
    // the send did not mean is one of its facts.
    if candidate.text != explanation.text {
      lines += Self.wrap(candidate.text, first: "  ", rest: "  ")
    }
    if candidate.verdict == .notAddressed { return lines }
    lines += candidate.facts.filter { $0.text != candidate.text }
      .flatMap { Self.fact($0, indent: "  ") }
    if let expression = candidate.expression {
      lines.append("  tag expression")
      lines += Self.tree(expression, depth: 2)
    }
    if let rendering = candidate.rendering {
      lines.append("  payload, \(rendering.bytes) bytes")
      var payload = rendering.payload
      if !isWhole, payload.count > Self.excerpt {
        payload = payload.prefix(Self.excerpt) + " … (--payload shows all)"
      }
      lines += Self.wrap(payload, first: "    ", rest: "    ")
    }
    if let id = candidate.pushID {
      lines.append("  push id \(id)" + (candidate.platform == .apns ? " (apns-id)" : ""))
    }
    return lines
  }

  private static func fact(_ fact: NotificationExplanation.Fact, indent: String) -> [String] {
    wrap(fact.text, first: indent + mark(fact.holds) + " ", rest: indent + "  ")
  }

  private static func mark(_ holds: Bool?) -> String { holds.map { $0 ? "✓" : "✗" } ?? "·" }

  /// Deeper parts than a person reads are left to --json.
  private static func tree(_ term: NotificationExplanation.Term, depth: Int) -> [String] {
    let indent = String(repeating: "  ", count: depth)
    let own = wrap(term.text, first: indent + mark(term.holds) + " ", rest: indent + "  ")
    guard depth < 12 else { return own }
    return own + term.parts.flatMap { tree($0, depth: depth + 1) }
  }

  /// Breaks a text at blanks, and at the width where there are none.
  static func wrap(_ text: String, first: String, rest: String) -> [String] {
    var lines: [String] = []
    var line = first
    var isEmpty = true
    for word in text.split(whereSeparator: { $0 == " " || $0.isNewline }) {
      var word = word
      if !isEmpty, line.count + 1 + word.count > width {
        lines.append(line)
        line = rest
        isEmpty = true
      }
      if !isEmpty { line += " " }
      while line.count + word.count > width {
        let room = max(1, width - line.count)
        lines.append(line + word.prefix(room))
        word = word.dropFirst(room)
        line = rest
      }
      line += word
      isEmpty = false
    }
    return isEmpty ? lines : lines + [line]
  }
}
