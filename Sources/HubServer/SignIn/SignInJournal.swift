import Authentication
import Foundation
import HTTPServer
package import HubCore
import NotificationHubs
import Synchronization

/// Records successful and failed sign-ins in the activity log.
///
/// Anyone can fail to sign in any number of times. Therefore a few failures are recorded, then one
/// every two minutes with the number of those omitted. Typed names are recorded only if they belong
/// to an operator, since they may be a password in the wrong field.
package final class SignInJournal: Sendable {
  private struct Budget {
    var left = SignInJournal.burst
    var filledAt: Date?
    var leftOut = 0
  }

  /// The number of failures in a row that are recorded.
  package static let burst = 20.0
  private static let refill = 120.0

  private let service: HubService
  private let log: HubLog
  /// The budget for entries about people in the activity log.
  private let people = Mutex(Budget())
  /// The budget for lines about the provider in the server's log.
  private let provider = Mutex(Budget())

  package init(service: HubService, log: HubLog = .silent) {
    self.service = service
    self.log = log
  }

  /// A sign-in is not a change, but readers of the log need it.
  func signedIn(_ one: OperatorSignIn.Operator, _ request: HTTPRequest) async {
    await keep(one.name, nil, request, status: 200)
  }

  /// - Parameters:
  ///   - whom: The name, if it is certainly an operator's, or the identity that a provider has
  ///     confirmed; `nil` otherwise.
  ///   - action: `signIn` or `confirm`.
  func failed(
    _ action: ActivityAction = .signIn, as whom: String?, _ request: HTTPRequest, status: Int
  ) async {
    guard let leftOut = spend(people) else { return }
    let more = leftOut == 0 ? nil : "\(leftOut) more before"
    await keep(
      "nobody", [whom, more].compactMap(\.self).joined(separator: "; "), request,
      action: action, status: status)
  }

  func failed(
    _ problem: ProviderPages.Problem, _ error: any Error, _ request: HTTPRequest
  ) async {
    switch problem.kind {
    // About the first nothing is known; the others are the user's own.
    case .insecure, .lost, .late, .declined, .busy: return
    case .unknown, .other, .stale, .code, .token:
      await failed(
        as: problem.subject ?? problem.email, request, status: problem.status.rawValue)
    case .refused, .unreachable, .client, .clock:
      guard let leftOut = spend(provider) else { return }
      log(
        .warning, "signIn.provider",
        "\(error as? OpenIDFault ?? .refused(problem.detail ?? ""))"
          + (leftOut == 0 ? "" : "; \(leftOut) more before"))
    }
  }

  /// - Returns: The number of lines omitted since the last; `nil` if this one is omitted.
  private func spend(_ budget: borrowing Mutex<Budget>) -> Int? {
    let now = service.clock.steady()
    return budget.withLock { budget in
      let passed = now.timeIntervalSince(budget.filledAt ?? now)
      budget.left = min(Self.burst, budget.left + max(0, passed) / Self.refill)
      budget.filledAt = now
      guard budget.left >= 1 else {
        budget.leftOut += 1
        return nil
      }
      budget.left -= 1
      defer { budget.leftOut = 0 }
      return budget.leftOut
    }
  }

  private func keep(
    _ actor: String, _ object: String?, _ request: HTTPRequest, action: ActivityAction = .signIn,
    status: Int
  ) async {
    let note = ActivityNote(
      action, of: object.flatMap { $0.isEmpty ? nil : $0 }, hub: 0, named: nil,
      by: Caller(name: actor, via: .portal, rights: []), from: request.remoteAddress,
      at: service.clock.now())
    try? await service.keep(note, status: status)
  }
}
