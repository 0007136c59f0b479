import Foundation
import NotificationHubs

/// The part of the explanation about one registration.
extension Explainer {
  func candidate(_ registration: StoredRegistration) -> Explanation.Candidate {
    let draft = registration.draft
    let number = registration.number
    var candidate = Explanation.Candidate(
      registrationID: registration.id, platform: draft.platform, template: draft.templateName,
      verdict: .unknown, text: "")
    var facts = audienceFacts(registration)
    if let expression = record.request.expression {
      let term = Explanation.Term(expression, tags: Set(draft.tags))
      candidate.expression = term
      facts.append(tagFact(term))
    } else {
      facts.append(Fact("tags", true, "It goes to every device, whatever its tags."))
    }
    if isAddressed(draft) {
      facts += rendering(draft, into: &candidate)
      facts += wayFacts(draft.platform)
    }
    candidate.facts = facts
    if isAddressed(draft) {
      let template: UInt64 =
        if case .template(let template, _) = draft.kind { PushIDSeed.number(of: template) } else {
          0
        }
      candidate.pushID =
        seed.id(for: draft.channel.handle.utf8, platform: draft.platform, template: template)
        .uuidText
    }
    let isMatch = candidate.expression?.holds ?? true
    if let kept = found.outcomes[number] {
      settle(&candidate, kept, twin: found.twins[number])
    } else if let retry = found.retries[number] {
      settle(&candidate, retry, platform: draft.platform)
    } else {
      (candidate.verdict, candidate.text) = judged(registration, isMatch: isMatch, candidate)
    }
    return candidate
  }

  /// A registration that was deleted since, of which only the outcome is left.
  func goneCandidate(_ kept: KeptOutcome) -> Explanation.Candidate {
    var candidate = Explanation.Candidate(
      registrationID: kept.registrationID, platform: kept.platform,
      // Its template's name was deleted with it.
      template: record.request.format == .template ? "" : nil, verdict: .failed, text: "",
      facts: [Fact("registration", false, "The registration has been removed since.")])
    // The template that it had is unknown.
    if let platform = kept.platform, let handle = kept.handle, record.request.format != .template {
      candidate.pushID = seed.id(for: handle.utf8, platform: platform).uuidText
    }
    settle(&candidate, kept, twin: nil)
    return candidate
  }

  func directCandidates() -> [Explanation.Candidate] {
    guard case .native(let platform) = record.request.format else { return [] }
    return found.directTargets.map { target in
      var candidate = Explanation.Candidate(
        registrationID: nil, platform: platform, template: nil, verdict: .unknown, text: "",
        facts: [Fact("handle", true, "The device's handle was among those named.")])
      candidate.facts += rendering(nil, [:], platform, into: &candidate)
      candidate.facts += wayFacts(platform)
      candidate.pushID = seed.id(for: target.handle.utf8, platform: platform).uuidText
      if let kept = found.outcomes[target.registration] {
        settle(&candidate, kept, twin: nil)
      } else if let retry = found.retries[target.registration] {
        settle(&candidate, retry, platform: platform)
      } else {
        (candidate.verdict, candidate.text) = judged(number: target.registration, platform)
      }
      return candidate
    }
  }

  // MARK: Facts

  private func isAddressed(_ draft: RegistrationDraft) -> Bool {
    switch record.request.format {
    case .template: draft.kind != .native
    case .native(let platform): draft.kind == .native && draft.platform == platform
    }
  }

  private func audienceFacts(_ registration: StoredRegistration) -> [Fact] {
    let draft = registration.draft
    let own =
      draft.templateName.map { $0.isEmpty ? "a template" : "the template '\($0)'" }
      ?? "native pushes"
    var facts = [
      Fact(
        "kind", isAddressed(draft),
        isAddressed(draft)
          ? "It is a registration for \(own) on \(draft.platform.rawValue), as the send asks."
          : "It is a registration for \(own) on \(draft.platform.rawValue), and the send goes to "
            + addressedWords + ".")
    ]
    if let last = record.lastRegistration {
      let wasThere = registration.number <= last
      facts.append(
        Fact(
          "existed", wasThere,
          wasThere
            ? "It was there when the notification was accepted."
            : "It was created after the notification was accepted."))
    }
    if let end = draft.expiresAt {
      let isAlive = end > record.releasedAt
      facts.append(
        Fact(
          "expiry", isAlive,
          "Its time \(end > found.now ? "ends" : "ended") \(Self.text(end))"
            + (isAlive ? "." : ", before the notification.")))
    }
    if let confirmed = found.confirmed[registration.number], confirmed > record.releasedAt {
      facts.append(
        Fact(
          "changed", nil,
          "Its tags and template are judged as they are now; it was last written or confirmed "
            + "\(Self.text(confirmed)), after the notification, and may have had others then."))
    }
    return facts
  }

  private var addressedWords: String {
    switch record.request.format {
    case .template: "registrations with a template"
    case .native(let platform): "native registrations on \(platform.rawValue)"
    }
  }

  private func tagFact(_ term: Explanation.Term) -> Fact {
    if term.holds { return Fact("tags", true, "The tag expression is true for its tags.") }
    let culprits = Set(term.culprits).sorted().prefix(10).joined(separator: ", ")
    return Fact(
      "tags", false, "The tag expression is false for its tags; what decides: \(culprits).")
  }

  private func rendering(
    _ draft: RegistrationDraft, into candidate: inout Explanation.Candidate
  ) -> [Fact] {
    guard case .template(let template, _) = draft.kind else {
      return rendering(nil, draft.pushVariables, draft.platform, into: &candidate)
    }
    return rendering(template, draft.pushVariables, draft.platform, into: &candidate)
  }

  private func rendering(
    _ template: PushTemplate?, _ variables: [String: String], _ platform: PushPlatform,
    into candidate: inout Explanation.Candidate
  ) -> [Fact] {
    guard !record.hasClearedText else {
      return [
        Fact("payload", nil, "The text of the message is not kept, so its payload is unknown.")
      ]
    }
    let form = renderer.form(of: template)
    if case .broken(let reason) = form {
      return [Fact("rendering", false, "The template cannot be used: \(reason)")]
    }
    guard
      let (body, missing) = renderer.render(form, pushVariables: variables, platform: platform)
    else { return [] }
    let rendering = Explanation.Rendering(body, missing: missing, platform: platform)
    candidate.rendering = rendering
    var facts = [
      Fact(
        "size", !body.isTooLarge(for: platform),
        "The payload has \(rendering.bytes) bytes"
          + (rendering.limit.map { "; \(platform.rawValue) takes \($0)." } ?? "."))
    ]
    if !missing.isEmpty {
      facts.append(
        Fact(
          "properties", nil,
          "The template names properties that the message does not have, which are left empty: "
            + missing.prefix(20).joined(separator: ", ") + "."))
    }
    return facts
  }

  private func wayFacts(_ platform: PushPlatform) -> [Fact] {
    guard found.platforms.contains(platform) else {
      return [Fact("credential", false, "The hub has no \(platform.rawValue) credential now.")]
    }
    let lane = found.status.lanes.first { $0.hub == record.hub && $0.platform == platform }
    guard let lane else { return [] }
    let until = lane.restsUntil.flatMap { $0 > found.now ? $0 : nil }
    guard until != nil || lane.isDown else { return [] }
    let what =
      lane.isRefused
      ? "The push service refuses the hub's credential"
      : lane.isDown
        ? "The push service cannot be reached or fails" : "The push service asked for a pause"
    let why = what + (lane.reason.map { " (\($0))" } ?? "")
    let next = until.map { "it is tried again \(Self.text($0))" } ?? "it is being tried again"
    return [Fact("push service", false, "\(why); \(next).")]
  }
}

extension RegistrationDraft {
  /// Empty for a template without a name; `nil` for a native registration.
  var templateName: String? {
    switch kind {
    case .native: nil
    case .template(_, let name): name ?? ""
    }
  }
}

extension NotificationExplanation.Term {
  /// The value of an expression, and of all its parts, for a device with these tags.
  /// Evaluates an expression, and all its parts, for a device with these tags.
  ///
  /// The depth is that of the expression, which its parser limits. A run of equal operators is
  /// shown as one list.
  init(_ expression: TagExpression, tags: Set<Tag>) {
    let parts: [TagExpression] =
      switch expression {
      case .tag: []
      case .not(let inner): [inner]
      case .and:
        Self.operands(of: expression) { if case .and(let l, let r) = $0 { (l, r) } else { nil } }
      case .or:
        Self.operands(of: expression) { if case .or(let l, let r) = $0 { (l, r) } else { nil } }
      }
    self.init(
      text: expression.description, holds: expression.evaluate(tags.contains),
      parts: parts.map { Self($0, tags: tags) })
  }

  /// The operands of a run of one operator from left to right; without recursion, because the run
  /// may be long.
  private static func operands(
    of expression: TagExpression,
    _ split: (TagExpression) -> (TagExpression, TagExpression)?
  ) -> [TagExpression] {
    var operands: [TagExpression] = []
    var rest = [expression]
    while let next = rest.popLast() {
      if let (left, right) = split(next) {
        rest.append(right)
        rest.append(left)
      } else {
        operands.append(next)
      }
    }
    return operands
  }

  /// The tags that determine the value: for a false conjunction those of its false parts, and so
  /// on.
  var culprits: [String] {
    if parts.isEmpty { return [text] }
    let deciding = parts.filter { $0.holds == holds }
    // Under a negation the part's own value determines it.
    return (deciding.isEmpty ? parts : deciding).flatMap(\.culprits)
  }
}
