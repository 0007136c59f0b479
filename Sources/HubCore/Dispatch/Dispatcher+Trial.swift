import NotificationHubs

/// What became of a push that was sent while its sender waited.
struct TrialOutcome: Sendable {
  let registration: RegistrationID
  let platform: PushPlatform
  /// In the form of ``TargetPage/handles``.
  let handle: String
  let outcome: NotificationOutcome
}

extension Dispatcher {
  /// Sends to a few targets at once and waits for the answers; nothing is recorded, retried or
  /// removed. How long a push service may take is for its gateway to bound.
  ///
  /// - Returns: One outcome for each target of the page, in its order.
  /// - Throws: What the store throws.
  nonisolated func deliverTrial(
    _ record: NotificationRecord, to page: TargetPage
  ) async throws -> [TrialOutcome] {
    let context = DispatchContext(record, limits: limits, clock: clock)
    var ways = [GatewayRoute?](repeating: nil, count: PushPlatform.allCases.count)
    try await routes.refresh()
    for platform in PagePlan.platforms(of: page) {
      ways[platform.ordinal] = try await routes.route(
        LaneKey(hub: context.hub, platform: platform))
    }
    let plan = PagePlan(page, context: context, routes: ways, isRetry: false, at: clock.steady())
    var outcomes: [RegistrationID: NotificationOutcome] = [:]
    for failure in plan.outcome.failures { outcomes[failure.registration] = failure.outcome }
    await withTaskGroup(of: (PagePart, [PushResult]).self) { group in
      for part in plan.parts { group.addTask { (part, await part.gateway.deliver(part.batch)) } }
      for await (part, results) in group {
        for (registration, result) in zip(part.registrations, results) {
          outcomes[registration] = result.outcome
        }
      }
    }
    return page.targets.map { target in
      TrialOutcome(
        registration: target.registration, platform: target.platform,
        handle: String(decoding: page.handles[target.handle], as: UTF8.self),
        outcome: outcomes[target.registration] ?? .pnsInterfaceError)
    }
  }
}
