import NotificationHubs

/// Carries one part to its gateway: whole, or in steps while the push service is to be spared.
struct PartDelivery: Sendable {
  private let part: PagePart
  private let isProbe: Bool
  private let pace: Int?
  private let page: Int

  /// - Parameters:
  ///   - isProbe: The first request goes ahead alone.
  ///   - pace: How many go at once at first; `nil`: all.
  ///   - page: The size of a page; see ``DispatchPool/step(page:)``.
  init(_ part: PagePart, isProbe: Bool, pace: Int?, page: Int) {
    self.part = part
    self.isProbe = isProbe
    self.pace = pace
    self.page = page
  }

  /// Delivers. When a probe or a step meets trouble, what follows is not sent; when it shows that the
  /// credential is refused, the others share that answer.
  /// - Returns: An answer for each request that was sent or shares an answer, from the first on;
  ///   and how many went at once in the end, `nil` when all did.
  func run() async -> (results: [PushResult], pace: Int?) {
    let count = part.batch.requests.count
    if pace ?? count >= count, !isProbe || count == 1 {
      return (await part.gateway.deliver(part.batch), pace)
    }
    var results: [PushResult] = []
    var pace = pace
    if isProbe {
      results = await deliver(0..<1)
      if let answer = results.first, answer.retry == .pauseCredential {
        return (Array(repeating: answer, count: count), pace)
      }
      let signs = Self.signs(results)
      if signs.failed > 0 || signs.isTroubled { return (results, pace) }
    }
    while results.count < count {
      let step = await deliver(results.count..<min(count, results.count + (pace ?? count)))
      results += step
      if let refusal = step.first(where: { $0.retry == .pauseCredential }) {
        return (results + Array(repeating: refusal, count: count - results.count), pace)
      }
      if step.isEmpty || Self.signs(step).isTroubled { break }
      pace = pace.map { $0 + DispatchPool.step(page: page) }
    }
    return (results, pace)
  }

  private func deliver(_ range: Range<Int>) async -> [PushResult] {
    var step = part.batch
    step.requests = Array(part.batch.requests[range])
    return await part.gateway.deliver(step)
  }

  private static func signs(_ results: [PushResult]) -> PartSigns {
    var signs = PartSigns()
    for result in results { signs.note(result) }
    return signs
  }
}
