package import Foundation
package import NotificationHubs

/// Feedback from push services about handles, as documents for the hub's owner
/// (docs/protocol/rest.md, section 6).
extension HubService {
  /// Lifetime of the token in a feedback container's address, in seconds: 12 hours.
  package static let feedbackAccess: TimeInterval = 12 * 3600

  /// A token for the hub's feedback only, signed with the first policy that may manage the hub; it
  /// expires with that policy's key, or after ``feedbackAccess``.
  ///
  /// - Parameter resource: The container's address without query.
  package func feedbackToken(
    hub: Hub, resource: String
  ) async throws(HubFailure) -> SharedAccessSignature {
    let snapshot = try await answering { try await directory.snapshot() }
    let policies = (snapshot.hub(hub.id)?.policies ?? []) + snapshot.namespacePolicies
    guard let policy = policies.first(where: { $0.rights.contains(.manage) }) else {
      throw HubFailure(status: 404, message: "No access policy may manage this hub")
    }
    return SharedAccessSignature(
      resource: resource, keyName: policy.name, key: policy.primaryKey,
      expiresAt: clock.now().addingTimeInterval(Self.feedbackAccess))
  }

  /// The hours that have feedback, the oldest first.
  package func feedbackHours(hub: Hub) async throws(HubFailure) -> [FeedbackHour] {
    try await answering { try await store.feedbackHours(hub: hub.id) }
  }

  /// The next documents of an hour after a number, at most 500, with the last one's number.
  package func feedback(
    hub: Hub, hour: Int64, after: Int64
  ) async throws(HubFailure) -> (documents: [PnsFeedback], last: Int64)? {
    let found = try await answering {
      try await store.feedback(hub: hub.id, hour: hour, after: after, limit: 500)
    }
    guard let last = found.last else { return nil }
    return (found.map(PnsFeedback.init), last.number)
  }
}

extension PnsFeedback {
  fileprivate init(_ feedback: HandleFeedback) {
    self.init(
      feedbackTime: feedback.at, notificationSystemError: feedback.outcome.name,
      platform: feedback.platform.sendFormat, pnsHandle: feedback.handle,
      registrationID: feedback.registration, installationID: feedback.installation,
      notificationID: feedback.notification.rawValue, newPnsHandle: feedback.newHandle)
  }
}
