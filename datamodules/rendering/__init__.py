"""Pictures drawn with Pillow alone: clock faces and charts."""
