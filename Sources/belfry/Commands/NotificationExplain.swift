import NotificationHubs

struct NotificationExplainCommand: ResultCommand {
  static let about = CommandHelp(
    "notification explain", "explain why a device did or did not get a notification",
    discussion: """
      Shows whether the device existed, which tags decided, the rendered payload and its size, the
      answer of the push service, the number of attempts and the time of the next one. Tags and
      templates are the current ones; if they have changed since, it says so.

      The exit code is 1 if the device did not get it.
      """,
    examples: [
      "belfry notification explain --last --installation 4f6d2a",
      "belfry notification explain 2e7f --installation 4f6d2a --json",
    ])

  private let choice = NotificationChoice()
  let client = ClientOptions(belfryOnly: "Manage")
  @Option("--installation", "ID", "the device, as its app calls it") var installation: String?
  @Option("--registration", "ID", "or one registration") var registration: String?
  @Flag("--payload", "show the payload, however long it is") var isWhole

  func result(in context: CommandContext) async throws -> CommandResult {
    try choice.check()
    try UsageError.check(exclusive: $installation, $registration)
    guard let device = installation ?? registration else {
      throw UsageError("say which device: --installation ID, or --registration ID")
    }
    let explanation = try await client.withHub(in: context) { access in
      let id = try await choice.wholeID(in: access)
      return installation != nil
        ? try await access.client.explanation(of: id, installation: device)
        : try await access.client.explanation(of: id, registration: device)
    }
    let kind = installation != nil ? "installation" : "registration"
    return CommandResult(
      written: explanation.json, ExplanationText(explanation, isWhole: isWhole).lines,
      failure: Self.isFine(explanation.verdict)
        ? nil : CommandFailure("\(kind) \(device): \(explanation.verdict.rawValue)"))
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
  /// The maximum number of characters shown of a payload.
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
    // Each sentence once: that of the first registration is the conclusion above, and that of a
    // registration not addressed by the send is one of its facts.
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

  /// Parts nested too deeply to be readable appear only in --json.
  private static func tree(_ term: NotificationExplanation.Term, depth: Int) -> [String] {
    let indent = String(repeating: "  ", count: depth)
    let own = wrap(term.text, first: indent + mark(term.holds) + " ", rest: indent + "  ")
    guard depth < 12 else { return own }
    return own + term.parts.flatMap { tree($0, depth: depth + 1) }
  }

  static func wrap(_ text: String, first: String, rest: String) -> [String] {
    text.wrapped(at: width, first: first, rest: rest)
  }
}
