/// Apps with what a hub needs to push to them, for a caller that runs the emulator in its own process: the
/// control API tells private keys once only.
extension EmulatorServer {
  /// A Firebase project and its service account.
  package struct FirebaseProject: Sendable {
    package let appID: String
    package let projectID: String
    package let clientEmail: String
    package let privateKeyID: String
    /// PEM PKCS#8.
    package let privateKey: String
    /// Where messages go, and where access tokens come from.
    package let endpoint: String
    package let tokenURI: String
  }

  /// The project of this id with an account whose key the emulator made; both are made if need be.
  ///
  /// - Throws: `ControlError` in words for people; `EmulatorError` before the start.
  package func firebaseProject(_ projectID: String = "demo-project") throws -> FirebaseProject {
    try core().withState { state in
      if state.fcm.app(project: projectID) == nil {
        _ = try FCMDesk().makeApp(
          ["pns": "fcm", "projectId": .string(projectID)], in: &state)
      }
      guard let app = state.fcm.app(project: projectID),
        let account = app.accounts.first(where: { $0.privateKeyPEM != nil && !$0.isDisabled })
      else {
        throw ControlError.conflict("project '\(projectID)' has no account of the emulator's own")
      }
      return FirebaseProject(
        appID: EmulatorState.appID(app.number), projectID: projectID,
        clientEmail: account.clientEmail, privateKeyID: account.privateKeyID,
        privateKey: account.privateKeyPEM ?? "", endpoint: state.origins.first(.fcm),
        tokenURI: state.tokenURI(.fcm))
    }
  }

  /// A web application's VAPID pair, base 64 URL.
  package struct WebApplication: Sendable {
    package let appID: String
    package let publicKey: String
    package let privateKey: String
  }

  /// The first web application whose pair the emulator made, which is made if there is none.
  ///
  /// - Throws: As ``firebaseProject(_:)``.
  package func webApplication() throws -> WebApplication {
    try core().withState { state in
      func own() -> WebApplication? {
        for app in state.webPush.apps.values.sorted(by: { $0.number < $1.number }) {
          if let publicKey = app.vapidPublicKey, let privateKey = app.vapidPrivateKey {
            return WebApplication(
              appID: EmulatorState.appID(app.number), publicKey: publicKey,
              privateKey: privateKey)
          }
        }
        return nil
      }
      if let own = own() { return own }
      _ = try WebPushDesk().makeApp(["pns": "webpush"], in: &state)
      guard let made = own() else { throw ControlError.notFound("web application") }
      return made
    }
  }
}
