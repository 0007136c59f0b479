// What the device SDK uses of AppKit, declared as the macOS SDK declares it. Nothing here does anything; see
// UIKit.swift.

@_exported import Foundation

@MainActor open class NSApplication: NSObject {
  open class var shared: NSApplication { NSApplication() }
  open func registerForRemoteNotifications() {}
}
