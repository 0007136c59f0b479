import HTTP2

/// The two token services of WNS.
extension EmulatorState {
  private enum Scope {
    static let live = "notify.windows.com"
    static let entra = "https://wns.windows.com/.default"
  }

  /// Hands out an access token.
  ///
  /// - Parameter tenant: Of Microsoft Entra; `nil` for a Microsoft account.
  mutating func answerWNSToken(
    _ request: PlainRequest, tenant: String?, now: Int64
  ) -> ServiceAnswer {
    guard request.method == "POST" else {
      return ServiceAnswer(
        .init(status: 405, fields: HTTP2FieldList([("allow", "POST")])), reason: "method")
    }
    do throws(TokenRefusal) {
      let wanted = try ClientCredentials(request)
      let number = try app(wanted, tenant: tenant)
      guard wanted.scope == (tenant == nil ? Scope.live : Scope.entra) else { throw .invalidScope }
      return grant(wanted, app: number, isEntra: tenant != nil, now: now)
    } catch {
      return ServiceAnswer(error.response, reason: error.error)
    }
  }

  private func app(
    _ wanted: ClientCredentials, tenant: String?
  ) throws(TokenRefusal) -> UInt32 {
    if let tenant {
      guard let app = wns.app(tenant: tenant, client: wanted.clientID), let entra = app.entra,
        entra.secret == wanted.secret
      else {
        // Only Entra says 401 to a client it does not know.
        throw .invalidClient(401)
      }
      return app.number
    }
    guard let app = wns.app(package: wanted.clientID), app.secret == wanted.secret else {
      throw .invalidClient(400)
    }
    return app.number
  }

  private mutating func grant(
    _ wanted: ClientCredentials, app: UInt32, isEntra: Bool, now: Int64
  ) -> ServiceAnswer {
    let options = settings.wns
    let lifetime = isEntra ? options.entraTokenLifetime : options.liveTokenLifetime
    let text = (isEntra ? "eyJ0" : "EgA") + generator.base64URL(120)
    let token = AccessTokens.Token(
      app: app, clientID: wanted.clientID, expiresAt: now + lifetime * 1000)
    if isEntra {
      wns.entraTokens.remember(text, token, now: now)
    } else {
      wns.liveTokens.remember(text, token, now: now)
    }
    let body: JSON = [
      "token_type": .string(isEntra ? "Bearer" : "bearer"), "access_token": .string(text),
      "expires_in": options.expiresInAsString ? .string(String(lifetime)) : .int(lifetime),
    ]
    return ServiceAnswer(.json(200, body, fields: [("cache-control", "no-store")]))
  }
}
