import Foundation
package import NotificationHubs

extension HubService {
  /// Maximum number of devices that a preview examines; beyond it the preview covers only the first
  /// ones.
  private static let previewLimit = 1_000_000
  private static let previewPage = 1_000

  /// Previews a send: checks it as ``send(hub:headers:body:)`` does, and traverses its audience,
  /// rendering for each device. Nothing is sent, nothing is stored.
  ///
  /// - Parameter isDirect: Whether the headers name one device.
  /// - Throws: ``HubFailure`` as the send would.
  package func preview(
    hub: Hub, headers: some Sequence<(name: String, value: String)>, body: [UInt8],
    isDirect: Bool
  ) async throws -> SendPreview {
    let headers = SendHeaders(headers)
    let request = try await read(headers, body, isDirect: isDirect)
    let platforms = try await answering {
      Set(try await store.credentials(hub: hub.id).map(\.platform))
    }
    var survey = AudienceSurvey(request, platforms: platforms)
    if isDirect {
      let platform = try request.directPlatform
      _ = try DirectTarget.target(of: headers, platform: platform)
      survey.addDirect(platform)
      return survey.preview(devices: 1, rate: nil, names: [:])
    }
    let now = clock.now()
    let record = NotificationRecord(
      id: NotificationID(at: now, random: random), hub: hub.id, request: request, state: .enqueued,
      enqueuedAt: now)
    let query = record.audience
    return try await answering {
      var next: RegistrationID? = 0
      while let after = next, survey.examined < Self.previewLimit {
        let page = try await store.targets(query, after: after, limit: Self.previewPage)
        survey.add(page)
        next = page.next
      }
      let devices = next == nil ? survey.examined : try await store.count(query)
      let names = try await store.registrationNames(survey.sampled, hub: hub.id)
      return survey.preview(
        devices: max(devices, survey.examined), rate: dispatcher.metrics.snapshot.rate,
        names: names)
    }
  }
}
